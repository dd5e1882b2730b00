"""How much cheaper our style layers are than the released algorithms, in process CPU time: `scripts/bench`.

Both run in turns in one process on the same features, so that what else the machine does strikes both.
Medians are compared.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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
    """Median seconds of process CPU time for one call."""

    layer: str
    work: str
    ours: float
    released: float

    @property
    def ratio(self) -> float:
        """How many times the released form costs what ours does."""
        return self.released / self.ours


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    comparisons = compare(tuple(options.shape), options.rounds)
    print(table(comparisons))
    if options.json:
        options.json.write_text(json.dumps(as_record(comparisons, options.shape), indent=2) + "\n")


def compare(shape: tuple[int, ...], rounds: int) -> list[Comparison]:
    """Every layer, forward alone and forward with backward."""
    features = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    comparisons = []
    for name, (ours, theirs) in _layers().items():
        for work, run in (("forward", _forward), ("forward+backward", _forward_and_backward)):
            seconds = _medians([ours, theirs], run, features, rounds)
            comparisons.append(Comparison(name, work, *seconds))
    return comparisons


def table(comparisons: Sequence[Comparison]) -> str:
    """One line per comparison, seconds and ratio."""
    lines = [f"{'layer':<10}{'work':<18}{'ours':>9}{'released':>10}{'ratio':>8}"]
    lines += [f"{it.layer:<10}{it.work:<18}{it.ours:>8.3f}s{it.released:>9.3f}s{it.ratio:>7.1f}x" for it in comparisons]
    return "\n".join(lines)


def as_record(comparisons: Sequence[Comparison], shape: Sequence[int]) -> dict[str, object]:
    """What `--json` writes."""
    return {
        "shape": list(shape),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "comparisons": [{**asdict(it), "ratio": it.ratio} for it in comparisons],
    }


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


def _medians(
    layers: Sequence[Layer], run: Callable[[Layer, Tensor], None], features: Tensor, rounds: int
) -> list[float]:
    seconds: list[list[float]] = [[] for _ in layers]
    for turn in range(rounds + 1):
        for layer, taken in zip(layers, seconds, strict=True):
            start = time.process_time()
            run(layer, features)
            # the first turn warms caches and allocators
            if turn > 0:
                taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in seconds]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--shape", type=int, nargs=4, default=PAPER_SHAPE, metavar=("B", "C", "H", "W"))
    parser.add_argument("--rounds", type=int, default=5, help="timed calls of each; medians are compared")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
