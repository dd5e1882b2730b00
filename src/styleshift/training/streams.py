"""Streams: the orders in which test images may come, and what a test-time method makes of them.

    iid         domain after domain, each shuffled          single    the same, one image at a time
    by-class    domain after domain, class after class      mixed     all domains shuffled together
    gradual     one domain fades into the next              long      iid over and over, for drift and collapse

    stream     the batches of one order, as numbers of images
    answers    what a method says of images; it is handed images and nothing else
    play       a method over a stream: its accuracy, also over time and by domain

Labels order a stream and judge answers. No method can see them: `answers` has none to give.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from styleshift.adaptation.wrapping import Adapted, Sees
from styleshift.training.evaluate import autocast
from styleshift.training.settings import Precision

BATCH = 64  # as Tent's authors
LONG = 10_000
_WINDOWS = 50  # points of a curve

Numbers = Int64[Tensor, "_"]  # as many as there are


@dataclass(frozen=True)
class Labelled:
    """Test images and what is known of them.

    images: gives those with these numbers, as the model takes them. classes, domains: by number.
    """

    images: Callable[[Tensor], Tensor]
    classes: Numbers
    domains: Numbers
    domain_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True)
class Moment:
    """seen: samples so far. accuracy: over them all. recent: since the moment before.

    said_most: share of those since then that got the class said most often; near 1 where a method has collapsed.
    """

    seen: int
    accuracy: float
    recent: float
    said_most: float


@dataclass(frozen=True)
class Played:
    """What a method made of a stream; accuracies are shares between 0 and 1.

    sees: what it was allowed to see. episodic: whether it was reset after every batch.
    """

    method: str
    order: str
    episodic: bool
    sees: Sees
    samples: int
    accuracy: float
    per_domain: dict[str, float]
    over_time: tuple[Moment, ...]

    @property
    def name(self) -> str:
        """The method, and that it is episodic where it is."""
        return f"{self.method}, episodic" if self.episodic else self.method

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Played":
        """What `plain` gave."""
        moments = tuple(Moment(**each) for each in plain["over_time"])
        return cls(**{**plain, "sees": Sees(**plain["sees"]), "over_time": moments})


def stream(
    order: str, classes: Numbers, domains: Numbers, *, batch_size: int = BATCH, length: int = LONG, seed: int = 0
) -> list[Numbers]:
    """The batches of `order` over images with these classes and domains.

    length: of the long stream, in samples.
    """
    expect_order(order, domains)
    if not len(classes):
        raise ValueError("a stream needs at least one image; there is none")
    if batch_size < 1 or length < 1:
        raise ValueError(f"batch_size and length are at least 1; got {batch_size} and {length}")
    generator = torch.Generator().manual_seed(seed)
    if order == "long":
        passes = -(-length // len(classes))
        numbers = torch.cat([_iid(classes, domains, generator) for _ in range(passes)])[:length]
    else:
        numbers = _ORDERS[order](classes, domains, generator)
    return list(torch.split(numbers, 1 if order == "single" else batch_size))


def orders_for(domains: Numbers) -> tuple[str, ...]:
    """The orders that mean something on images of these domains: some need several."""
    several = len(set(domains.tolist())) > 1
    return tuple(order for order in ORDERS if several or order not in _OF_SEVERAL)


def expect_order(order: str, domains: Numbers) -> None:
    """ValueError, with those there are, if these images have no such order."""
    if order not in ORDERS:
        raise ValueError(f"an order is one of {', '.join(ORDERS)}; got {order!r}")
    if order not in orders_for(domains):
        raise ValueError(f"{order!r} needs images of several domains; these are of one")


def answers(adapted: Adapted, images: Iterable[Tensor], *, episodic: bool = False) -> Iterator[Numbers]:
    """The classes that a method says, batch by batch, from a fresh start.

    episodic: reset before every batch, so that none learns from another.
    """
    adapted.reset()
    for batch in images:
        if episodic:
            adapted.reset()
        yield adapted(batch).argmax(dim=1).cpu()


def play(
    name: str,
    adapted: Adapted,
    labelled: Labelled,
    order: str = "iid",
    *,
    batches: Sequence[Numbers] | None = None,
    episodic: bool = False,
    precision: Precision = "float32",
) -> Played:
    """A method over a stream. batches: in place of the default ones of `order`."""
    batches = stream(order, labelled.classes, labelled.domains) if batches is None else batches
    with autocast(precision):
        said = torch.cat(list(answers(adapted, map(labelled.images, batches), episodic=episodic)))
    numbers = torch.cat(list(batches))
    hits = said == labelled.classes[numbers]
    domains = labelled.domains[numbers]
    return Played(
        method=name,
        order=order,
        episodic=episodic,
        sees=adapted.sees,
        samples=len(hits),
        accuracy=_share(hits),
        per_domain={labelled.domain_names[d]: _share(hits[domains == d]) for d in sorted(set(domains.tolist()))},
        over_time=tuple(_moments(hits, said)),
    )


def _moments(hits: Tensor, said: Tensor) -> Iterator[Moment]:
    first = 0
    for window in range(_WINDOWS):
        last = len(hits) * (window + 1) // _WINDOWS
        if last > first:
            most = torch.bincount(said[first:last]).amax()
            yield Moment(last, _share(hits[:last]), _share(hits[first:last]), int(most) / (last - first))
        first = last


def _share(hits: Tensor) -> float:
    return int(hits.sum()) / len(hits)


def _iid(classes: Numbers, domains: Numbers, generator: torch.Generator) -> Numbers:
    return torch.cat([_shuffled(numbers, generator) for numbers in _alike(domains)])


def _by_class(classes: Numbers, domains: Numbers, generator: torch.Generator) -> Numbers:
    found = []
    for numbers in _alike(domains):
        groups = [numbers[own] for own in _alike(classes[numbers])]
        turns = torch.randperm(len(groups), generator=generator).tolist()
        found += [_shuffled(groups[turn], generator) for turn in turns]
    return torch.cat(found)


def _mixed(classes: Numbers, domains: Numbers, generator: torch.Generator) -> Numbers:
    return torch.randperm(len(domains), generator=generator)


def _gradual(classes: Numbers, domains: Numbers, generator: torch.Generator) -> Numbers:
    # the sum of two equal draws is densest in the middle of [0, 2], so a domain is half gone as the next is half there
    late = torch.rand(2, len(domains), generator=generator).sum(dim=0)
    turn: Tensor = torch.unique(domains, return_inverse=True)[1]
    return (turn + late).argsort(stable=True)


def _alike(labels: Numbers) -> list[Numbers]:
    """The places of each label."""
    return [(labels == label).nonzero()[:, 0] for label in sorted(set(labels.tolist()))]


def _shuffled(numbers: Numbers, generator: torch.Generator) -> Numbers:
    return numbers[torch.randperm(len(numbers), generator=generator)]


_ORDERS: Mapping[str, Callable[[Numbers, Numbers, torch.Generator], Numbers]] = {
    "iid": _iid,
    "single": _iid,
    "by-class": _by_class,
    "mixed": _mixed,
    "gradual": _gradual,
}
ORDERS = (*_ORDERS, "long")
_OF_SEVERAL = ("mixed", "gradual")
