"""A plain torch model that keeps working on styles it has never seen: python examples/plain_torch.py"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import styleshift


class Net(nn.Module):
    """Any model of yours."""

    def __init__(self) -> None:
        super().__init__()
        self.block1, self.block2 = (nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.ReLU()) for a, b in ((3, 16), (16, 32)))
        self.head = nn.Linear(32, 2)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.block2(self.block1(images)).mean(dim=(2, 3)))
        return logits


def stripes(count: int, contrast: float, light: float) -> tuple[Tensor, Tensor]:
    """Standing (class 0) and lying (class 1) stripes, in some style."""
    classes = torch.arange(count) % 2
    wave = torch.sin(torch.arange(32) * 1.5 + torch.rand(count, 1) * 6)[:, None, None, :].expand(-1, 3, 32, -1)
    turned = torch.where(classes[:, None, None, None] == 0, wave, wave.transpose(2, 3))
    return turned * contrast + light + torch.randn(count, 3, 32, 32) * 0.1, classes


def main() -> None:
    torch.manual_seed(0)
    domains = {"day": stripes(256, 1.0, 1.0), "dusk": stripes(256, 0.7, 0.6)}
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    images, classes = (torch.cat(part) for part in zip(*domains.values(), strict=True))
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    batches = [(x, [name] * len(x)) for name, (x, _) in domains.items()]
    robust = styleshift.fit(model.eval(), batches, at="block1", alpha=3.0)
    for name, (unseen, labels) in {"day again": stripes(200, 1.0, 1.0), "night": stripes(200, 0.15, -1.0)}.items():
        plain, shifted = ((m(unseen).argmax(1) == labels).double().mean() * 100 for m in (model, robust))
        far = int(robust.explain(unseen).far.sum())
        print(f"{name}: {plain:.0f} % as it is, {shifted:.0f} % shifted; {far} of {len(unseen)} are far")
    with tempfile.TemporaryDirectory() as folder:
        robust.save(file := Path(folder) / "styles.safetensors")
        again = styleshift.load(model, file)
        assert torch.equal(again(unseen), robust(unseen))


if __name__ == "__main__":
    main()
