"""Checking a dataset: every image decoded, counts and pixels compared with what is known of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from styleshift.data.decoding import DamagedImageError, Progress, decoded_all, rgb
from styleshift.data.domains import Domains
from styleshift.data.facts import Catalogued, Facts
from styleshift.data.manifests import Manifest, pixel_digest


@runtime_checkable
class Manifested(Protocol):
    """A dataset whose every image is known."""

    def found(self, root: Path) -> Domains:
        """What is there, complete or not."""

    def manifest(self) -> Manifest:
        """What should be there."""


class Problem(NamedTuple):
    """A file, or a domain, and what is wrong with it."""

    where: str
    what: str


@dataclass(frozen=True)
class Report:
    """What a check found.

    dataset: the images that are there.
    problems: what is wrong; empty for a sound dataset.
    notes: what there is to know besides.
    """

    dataset: Domains
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def facts(self) -> dict[str, Any]:
        """The report for a program to read."""
        counts = {
            domain: dict(zip(self.dataset.class_names, map(int, row), strict=True))
            for domain, row in zip(self.dataset.domain_names, self.dataset.counts(), strict=True)
        }
        return {
            "dataset": self.dataset.name,
            "root": str(self.dataset.root),
            "images": len(self.dataset),
            "counts": counts,
            "sound": self.sound,
            "problems": [problem._asdict() for problem in self.problems],
            "notes": list(self.notes),
        }


def check(entry: Catalogued, root: Path, progress: Progress | None = None, workers: int | None = None) -> Report:
    """Decode every image of the dataset in `root` and compare with its manifest, or else with its counts.

    progress: called with how many images are decoded and how many there are.
    workers: threads that decode; None takes one for each core.
    """
    known = entry.manifest() if isinstance(entry, Manifested) else None
    dataset = entry.found(root) if isinstance(entry, Manifested) else entry.load(root)
    digests = dict(zip(known.files, known.digests, strict=True)) if known else {}
    problems = [
        *(Problem(domain, f"has no {classes}") for domain, classes in _lacking(dataset) if entry.facts.image_counts),
        *(Problem(file, "is missing") for file in sorted(set(digests) - set(dataset.files))),
        *_damaged(dataset, digests, progress, workers),
        *(() if known else _miscounted(dataset, entry.facts)),
    ]
    return Report(dataset, tuple(problems), tuple(_notes(dataset, entry.facts, known is not None)))


def _damaged(
    dataset: Domains, digests: dict[str, str], progress: Progress | None, workers: int | None
) -> Iterator[Problem]:
    def problem_of(file: str) -> str | None:
        try:
            digest = pixel_digest(np.asarray(rgb(dataset.root / file)))
        except DamagedImageError as damage:
            return str(damage).removeprefix(f"{dataset.root / file} ")
        if not digests:
            return None
        if file not in digests:
            return f"is not an image of {dataset.name}"
        return None if digest == digests[file] else "has other pixels than the published image"

    for file, what in zip(dataset.files, decoded_all(problem_of, dataset.files, workers, progress), strict=True):
        if what is not None:
            yield Problem(file, what)


def _miscounted(dataset: Domains, facts: Facts) -> Iterator[Problem]:
    counts = dict(zip(dataset.domain_names, dataset.counts().sum(axis=1), strict=True))
    for domain, expected in facts.image_counts.items():
        if counts[domain] != expected:
            yield Problem(domain, f"has {counts[domain]} images; {facts.title} has {expected} there")
    if facts.class_count and len(dataset.class_names) != facts.class_count:
        yield Problem(facts.title, f"has {facts.class_count} classes; {len(dataset.class_names)} are there")


def _lacking(dataset: Domains) -> Iterator[tuple[str, str]]:
    """Each domain that lacks classes, and those."""
    for domain, row in zip(dataset.domain_names, dataset.counts(), strict=True):
        lacking = [name for name, count in zip(dataset.class_names, row, strict=True) if not count]
        if lacking:
            yield domain, ", ".join(lacking)


def _notes(dataset: Domains, facts: Facts, by_pixels: bool) -> Iterator[str]:
    for file, why in facts.dropped.items():
        yield f"{file} is {why}; it is left out when the dataset is used"
    if not facts.image_counts:
        # a set of one's own may be made so; every known one has each of its classes in each of its domains
        yield from (f"{domain} has no {classes}" for domain, classes in _lacking(dataset))
    elif not by_pixels:
        yield "compared by counts; no digests of the images are known"
