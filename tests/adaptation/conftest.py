"""Small networks with norms, the sources' styles, and images that are far from them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from styleshift.backbones.building import network
from styleshift.sources import SourceStyles, sources_of


@dataclass(frozen=True)
class World:
    """model: its norms have seen images. styles: at layer2. sources, images: `[B, 3, 16, 16]`."""

    model: nn.Module
    styles: SourceStyles
    sources: Tensor
    images: Tensor


class TinyNet(nn.Module):
    """BatchNorm, the mean over places, a linear head: small enough to do by hand. Two channels, three classes."""

    def __init__(self, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.norm = norm or nn.BatchNorm2d(2)
        self.head = nn.Linear(2, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(images).mean(dim=(2, 3)))
        return logits


@pytest.fixture
def world() -> World:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = network("smallnet", 4)
        for _ in range(3):
            model(torch.randn(16, 3, 16, 16))
        model.eval()
        domains = torch.arange(12) % 3
        sources = torch.randn(12, 3, 16, 16) * (0.5 + 0.5 * domains)[:, None, None, None]
        images = torch.randn(8, 3, 16, 16) * torch.linspace(0.5, 4, 8)[:, None, None, None] + 1
    return World(model, sources_of(model, [(sources, domains)], "layer2"), sources, images)


@pytest.fixture
def tiny() -> TinyNet:
    """In double precision, always with the same weights; its norm has source statistics of its own."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        net = TinyNet().double().eval()
        assert isinstance(net.norm, nn.BatchNorm2d)
        net.norm.running_mean = torch.tensor([0.3, -0.5], dtype=torch.float64)
        net.norm.running_var = torch.tensor([2.0, 0.7], dtype=torch.float64)
        with torch.no_grad():
            net.head.weight.mul_(3)
            net.norm.weight.copy_(torch.tensor([1.5, 0.8]))
            net.norm.bias.copy_(torch.tensor([0.2, -0.4]))
    return net


@pytest.fixture
def stream() -> list[Tensor]:
    """Batches of 3, 1 and 4 images `[B, 2, 2, 2]` for it."""
    drawn = torch.randn(8, 2, 2, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return list((drawn * 2 + 0.5).split((3, 1, 4)))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """One thread, and the number before afterwards: so small a network is slower on more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
