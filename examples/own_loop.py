"""Style balancing and MixStyle in a training loop of one's own, with domains that lack classes.

python examples/own_loop.py
"""

import torch
from torch import Tensor, nn

import styleshift

CLASSES, DOMAINS = 4, 3


def drawn(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images whose class is a bright corner and whose domain is a contrast; most classes are in one domain."""
    classes = torch.randint(CLASSES, (count,), generator=generator)
    usual = torch.rand(count, generator=generator) < 0.9
    domains = torch.where(usual, classes % DOMAINS, torch.randint(DOMAINS, (count,), generator=generator))
    images = torch.randn(count, 3, 32, 32, generator=generator) * 0.2
    for image, class_ in zip(images, classes.tolist(), strict=True):
        image[:, 16 * (class_ // 2) :, 16 * (class_ % 2) :][:, :16, :16] += 1
    return images * (0.5 + domains[:, None, None, None]), classes, domains


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = styleshift.backbone("smallnet", classes=CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    styler = styleshift.StyleTraining(model, augment="mixstyle", balance=True, n_domains=DOMAINS)
    model.train()
    for step in range(40):
        images, classes, domains = drawn(32, generator)
        with styler.batch(classes, domains):
            loss = nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.2f}")
    assert styler.balancing is not None
    print(f"styles changed {styler.fired} times in {styler.forwards} forwards; {styler.balancing.moved} samples moved")
    styler.remove()

    model.eval()  # nothing would act here, removed or not
    images, classes, _ = drawn(200, generator)
    with torch.inference_mode():
        print(f"accuracy {(model(images).argmax(1) == classes).double().mean() * 100:.0f} %")


if __name__ == "__main__":
    main()
