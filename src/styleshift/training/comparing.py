"""Test-time methods side by side on labelled images of one's own, with a verdict in plain words.

    compared    every method on every domain, each domain from a fresh start, shuffled, in batches
    Verdict     whether style shifting helps on a domain

Which method does best is seen with these labels: on other images it may be another.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from styleshift.adaptation.wrapping import Adapted, Sees
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles
from styleshift.training.adapted_rows import Row, wrapped
from styleshift.training.cost import Cost, costs
from styleshift.training.online import are_shifted
from styleshift.training.streams import BATCH, Labelled, answers, stream

_UNSURE = 0.05  # as likely as this by chance alone, a difference is not called one
_ROUNDS = 3


@dataclass(frozen=True)
class Tried:
    """What one method made of each domain.

    accuracy, shifted: by domain, shares between 0 and 1. hits: by domain, image by image.
    cost: at the comparison's batch size. refused: why it could not answer; then all else is empty.
    """

    method: str
    sees: Sees
    accuracy: dict[str, float]
    shifted: dict[str, float]
    hits: dict[str, Tensor]
    cost: Cost | None = None
    refused: str | None = None

    @property
    def average(self) -> float | None:
        """Of the domains, each counting the same."""
        return sum(self.accuracy.values()) / len(self.accuracy) if self.accuracy else None

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        facts = {"method": self.method, "sees": asdict(self.sees), "accuracy": self.accuracy, "average": self.average}
        return {**facts, "shifted": self.shifted, "cost": self.cost and self.cost.plain(), "refused": self.refused}


@dataclass(frozen=True)
class Verdict:
    """Whether shifting helps on a domain. gain: in accuracy, a share. chance: of so large a difference by luck."""

    domain: str
    gain: float
    shifted: float
    chance: float

    @property
    def words(self) -> str:
        """In one line."""
        share = f"{100 * self.shifted:.0f} % shifted"
        if self.shifted == 0:
            return f"no effect on {self.domain}: {share}"
        points = f"{100 * self.gain:+.1f} points, {share}"
        if self.chance >= _UNSURE:
            return f"no clear effect on {self.domain}: {points}"
        return f"TS {'helps' if self.gain > 0 else 'hurts'} on {self.domain}: {points}"


def compared(
    model: nn.Module,
    rows: Mapping[str, Row],
    styles: Mapping[str, SourceStyles],
    labelled: Labelled,
    *,
    batch_size: int = BATCH,
    seed: int = 0,
    fitted: ShiftedModel | None = None,
) -> list[Tried]:
    """What every row makes of the images, and what it costs. `model` stays as it is.

    fitted: what rows stand for that name neither layer nor threshold; see `wrapped`.
    """
    adapted = {name: wrapped(row, model, styles, seed=seed, fitted=fitted) for name, row in rows.items()}
    batches = _batches(labelled, batch_size, seed)
    first = labelled.images(next(iter(batches.values()))[0])
    cost = {each.method: each for each in costs(model, adapted, first, rounds=_ROUNDS)}
    return [_tried(name, each, labelled, batches, cost[name]) for name, each in adapted.items()]


def verdicts(plain: Tried, shifting: Tried) -> list[Verdict]:
    """Domain by domain, of a method that shifts beside the model as it is."""
    found = []
    for domain, hits in plain.hits.items():
        gained = shifting.hits[domain].long() - hits.long()
        chance = luck(int((gained > 0).sum()), int((gained < 0).sum()))
        found.append(Verdict(domain, float(gained.double().mean()), shifting.shifted[domain], chance))
    return found


def luck(wins: int, losses: int) -> float:
    """How often a fair coin is as uneven as this (McNemar's exact test, both sides)."""
    tosses, rarer = wins + losses, min(wins, losses)
    # in logarithms: 2 ** 10,000 is no float
    logs = [
        math.lgamma(tosses + 1) - math.lgamma(k + 1) - math.lgamma(tosses - k + 1) - tosses * math.log(2)
        for k in range(rarer + 1)
    ]
    return min(1.0, 2 * sum(map(math.exp, logs)))


def _batches(labelled: Labelled, batch_size: int, seed: int) -> dict[str, list[Tensor]]:
    """Of each domain, shuffled."""
    found = {}
    for domain in sorted(set(labelled.domains.tolist())):
        own = (labelled.domains == domain).nonzero()[:, 0]
        parts = stream("iid", labelled.classes[own], labelled.domains[own], batch_size=batch_size, seed=seed)
        found[labelled.domain_names[domain]] = [own[numbers] for numbers in parts]
    return found


def _tried(
    name: str, adapted: Adapted, labelled: Labelled, batches: Mapping[str, Sequence[Tensor]], cost: Cost
) -> Tried:
    hits, shifted = {}, {}
    try:
        for domain, numbers in batches.items():
            far: list[Tensor] = []
            said = torch.cat(list(answers(adapted, _noting(far, adapted, map(labelled.images, numbers)))))
            hits[domain] = said == labelled.classes[torch.cat(list(numbers))]
            shifted[domain] = _share(torch.cat(far))
    except ValueError as error:
        return Tried(name, adapted.sees, {}, {}, {}, cost, str(error))
    return Tried(name, adapted.sees, {domain: _share(own) for domain, own in hits.items()}, shifted, hits, cost)


def _noting(far: list[Tensor], adapted: Adapted, batches: Iterable[Tensor]) -> Iterator[Tensor]:
    """The same batches; which images are about to be shifted is noted before each is answered for."""
    for images in batches:
        far.append(are_shifted(adapted, images))
        yield images


def _share(marks: Tensor) -> float:
    return int(marks.sum()) / len(marks)
