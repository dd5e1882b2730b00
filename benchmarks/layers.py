"""How much cheaper our style layers are than the released algorithms, in process CPU time: `scripts/bench layers`.

Both run in turns in one process on the same features, so that what else the machine does strikes both.
Medians are compared.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks import released
from styleshift.layers.dsu import DSU
from styleshift.layers.efdmix import EFDMix
from styleshift.layers.mixstyle import MixStyle

Layer = Callable[[Tensor], Tensor]
PAPER_SHAPE = (128, 64, 56, 56)


@dataclass(frozen=True)
class Comparison:
    """Median seconds of process CPU time for one call: of ours, and of what it is compared with."""

    what: str
    work: str
    ours: float
    other: float

    @property
    def ratio(self) -> float:
        """How many times the other costs what ours does."""
        return self.other / self.ours

    def __str__(self) -> str:
        return f"{self.what:<14}{self.work:<18}{self.ours:>8.4f}s{self.other:>9.4f}s{self.ratio:>7.1f}x"


def compare(rounds: int, shape: tuple[int, ...] = PAPER_SHAPE) -> list[Comparison]:
    """Every layer, forward alone and forward with backward."""
    features = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    comparisons = []
    for name, (ours, theirs) in _layers().items():
        for work, run in (("forward", _forward), ("forward+backward", _forward_and_backward)):
            seconds = medians([partial(run, ours, features), partial(run, theirs, features)], rounds)
            comparisons.append(Comparison(name, work, *seconds))
    return comparisons


def _layers() -> dict[str, tuple[Layer, Layer]]:
    return {
        "MixStyle": (MixStyle(p=1.0), _released_mixstyle),
        "EFDMix": (EFDMix(p=1.0), _released_efdmix),
        "DSU": (DSU(p=1.0), _released_dsu),
    }


def _released_mixstyle(features: Tensor) -> Tensor:
    return released.mixstyle(features, torch.randperm(len(features)), _shares(len(features)))


def _released_efdmix(features: Tensor) -> Tensor:
    return released.efdmix(features, torch.randperm(len(features)), _shares(len(features)))


def _released_dsu(features: Tensor) -> Tensor:
    return released.dsu(features, torch.randn(features.shape[:2]), torch.randn(features.shape[:2]))


def _shares(count: int) -> Tensor:
    return torch.distributions.Beta(0.1, 0.1).sample((count,))


def _forward(layer: Layer, features: Tensor) -> None:
    layer(features)


def _forward_and_backward(layer: Layer, features: Tensor) -> None:
    leaf = features.detach().requires_grad_()
    torch.autograd.backward(layer(leaf), features)


def medians(works: Sequence[Callable[[], None]], rounds: int) -> list[float]:
    """Seconds of process CPU time of one call of each, done in turns."""
    seconds: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, taken in zip(works, seconds, strict=True):
            began = time.process_time()
            work()
            # the first turn warms caches and allocators
            if turn > 0:
                taken.append(time.process_time() - began)
    return [statistics.median(taken) for taken in seconds]
