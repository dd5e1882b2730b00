"""What a test-time method costs beside the plain model: time, memory, forwards and backwards.

    costs     of several methods, all in one run and in turns, so that what else the machine does strikes all alike
    Cost      of one method at one batch size

Time is process CPU time on a CPU, and the clock's on a GPU. A ratio is taken within each turn; medians and quartiles
are over the turns.
"""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from styleshift.adaptation.wrapping import Adapted
from styleshift.twins import reachable, twin

PLAIN = "plain"
ROUNDS = 15
_WARM = 2  # turns that warm caches and allocators, and are not counted


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        low, median, high = (
            statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * [values[0]]
        )
        return cls(median, low, high)


@dataclass(frozen=True)
class Cost:
    """A method at one batch size; the plain model is called "plain".

    milliseconds: an image. ratio: to the plain model's time in the same turn; 1 for that model itself.
    forwards, backwards: images that pass the model either way, for each that is answered.
    kept: bytes that the method holds besides the model's. graph: bytes that it holds for one backward, at most.
    refused: why it cannot answer, where it cannot; then all else is None.
    """

    method: str
    batch: int
    milliseconds: Spread | None = None
    ratio: Spread | None = None
    forwards: float | None = None
    backwards: float | None = None
    kept: int | None = None
    graph: int | None = None
    refused: str | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def costs(model: nn.Module, adapted: Mapping[str, Adapted], images: Tensor, *, rounds: int = ROUNDS) -> list[Cost]:
    """Of the plain model and every method, on this batch of images. rounds: turns that are timed."""
    if rounds < 1:
        raise ValueError(f"at least 1 round is timed; got {rounds}")
    body = twin(model).eval()
    counted = {name: _counted(name, model, each, images) for name, each in adapted.items()}
    works: dict[str, Callable[[], object]] = {PLAIN: lambda: body(images)}
    works |= {name: _call(adapted[name], images) for name, cost in counted.items() if cost.refused is None}
    seconds = _in_turns(works, rounds, images.device)
    for each in adapted.values():
        each.reset()
    counted = {PLAIN: Cost(PLAIN, len(images), forwards=1.0, backwards=0.0, kept=0, graph=0), **counted}
    return [_timed(cost, seconds[name], seconds[PLAIN]) if name in seconds else cost for name, cost in counted.items()]


def _timed(cost: Cost, seconds: Sequence[float], plain: Sequence[float]) -> Cost:
    milliseconds = [1000 * taken / cost.batch for taken in seconds]
    ratios = [taken / beside for taken, beside in zip(seconds, plain, strict=True)]
    return replace(cost, milliseconds=Spread.of(milliseconds), ratio=Spread.of(ratios))


def _call(adapted: Adapted, images: Tensor) -> Callable[[], object]:
    return lambda: adapted(images)


@torch.no_grad()
def _in_turns(works: Mapping[str, Callable[[], object]], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Seconds of every call of each; a turn calls all, each time in another order."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    order = random.Random(0)
    for turn in range(-min(_WARM, rounds), rounds):
        # whoever comes after a large one finds cold caches: by chance, so that it strikes all alike
        for name in order.sample(list(works), len(works)):
            began = _now(device)
            works[name]()
            if turn >= 0:
                seconds[name].append(_now(device) - began)
    return seconds


def _now(device: torch.device) -> float:
    if device.type == "cpu":
        return time.process_time()
    torch.accelerator.synchronize(device)
    return time.perf_counter()


def _counted(name: str, model: nn.Module, adapted: Adapted, images: Tensor) -> Cost:
    """What one call of a method does, but for the time it takes."""
    tally = _Tally({_place(tensor) for tensor in [*model.parameters(), *model.buffers()]})
    handles = [adapted.body.register_forward_pre_hook(tally.begin), adapted.body.register_forward_hook(tally.end)]
    adapted.reset()
    try:
        with torch.autograd.graph.saved_tensors_hooks(tally.saved, lambda tensor: tensor):
            adapted(images)
    except ValueError as error:
        return Cost(name, len(images), refused=str(error))
    finally:
        for handle in handles:
            handle.remove()
    kept = _bytes_beside(model, adapted)
    adapted.reset()
    answered = len(images)
    return Cost(
        name,
        answered,
        forwards=tally.forwards / answered,
        backwards=tally.backwards / answered,
        kept=kept,
        graph=tally.most,
    )


class _Tally:
    """Counts what passes a body, and the memory that one forward keeps for its backward."""

    def __init__(self, known: set[int]) -> None:
        self.forwards = self.backwards = self.most = 0
        self._known = known
        self._held: dict[int, int] = {}

    def begin(self, body: nn.Module, args: tuple[Any, ...]) -> None:
        self._held = {}

    def end(self, body: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        self.forwards += len(args[0])
        if output.requires_grad:
            torch.autograd.graph.register_multi_grad_hook((output,), self._passed, mode="any")

    def saved(self, tensor: Tensor) -> Tensor:
        if _place(tensor) not in self._known:
            self._held[_place(tensor)] = tensor.untyped_storage().nbytes()
            self.most = max(self.most, sum(self._held.values()))
        return tensor

    def _passed(self, gradient: Tensor) -> None:
        self.backwards += len(gradient)


def _bytes_beside(model: nn.Module, adapted: Adapted) -> int:
    """In tensors that are reached from the method and not from the model."""
    own = {_place(thing) for thing in reachable(model) if isinstance(thing, Tensor)}
    held = {_place(thing): thing for thing in reachable(adapted) if isinstance(thing, Tensor)}
    return sum(thing.untyped_storage().nbytes() for place, thing in held.items() if place not in own)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
