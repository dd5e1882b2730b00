"""Imbalanced training sets (paper Sec. 5 and the appendix on long tails), made by leaving images out.

    data-imbalanced     the largest source keeps all its images, the others lose a share    Fig. 4, Table 2 left
    class-imbalanced    every class stays in one source only                                   Table 2 right, Table 3
    long-tailed         within each source, class after class has fewer images                 appendix

A scenario takes the indices to train on and gives those that stay, in the same order; a seed draws which.

Reading: the paper calls two settings with very different results "class-imbalanced"; this is the one of its Sec. 5.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from styleshift.data.domains import Domains, Indices
from styleshift.writing import atomically


@runtime_checkable
class Scenario(Protocol):
    """What is done to the training set."""

    def apply(self, dataset: Domains, indices: Indices, seed: int) -> Indices:
        """Those of `indices` that stay."""


@dataclass(frozen=True)
class Original:
    """Everything stays."""

    def apply(self, dataset: Domains, indices: Indices, seed: int) -> Indices:
        """All of `indices`."""
        return indices


@dataclass(frozen=True)
class DataImbalance:
    """The largest source keeps everything; of the others a share is removed, alike from all classes.

    removed: the share, 0 up to but not 1; the paper's Table 2 takes 0.8.
    """

    removed: int | float = 0.8

    def __post_init__(self) -> None:
        if not 0 <= self.removed < 1:
            raise ValueError(f"removed is a share from 0 up to but not 1; got {self.removed}.")

    def apply(self, dataset: Domains, indices: Indices, seed: int) -> Indices:
        """Those of `indices` that stay; of sources of one size the first counts as the largest."""
        counts = _counts(dataset, indices)
        largest = counts.sum(axis=1).argmax()
        for domain in np.flatnonzero(counts.sum(axis=1)):
            if domain != largest:
                counts[domain] = _shared(counts[domain], round((1 - self.removed) * counts[domain].sum()))
        return _kept(dataset, indices, counts, seed)


@dataclass(frozen=True)
class ClassImbalance:
    """Each class stays in one source: the first source keeps the first classes, the second the next.

    shares: how many classes each source keeps, in order of the domains; their sum is K. None shares them as evenly as
        can be, the first sources getting one more: 3/2/2 for PACS and 2/2/1 for VLCS, as in the paper.
    order: a seed that shuffles the classes before they are shared out; None leaves them in order.
    """

    shares: tuple[int, ...] | None = (3, 2, 2)
    order: int | None = None

    def apply(self, dataset: Domains, indices: Indices, seed: int) -> Indices:
        """Those of `indices` that stay; nothing is left to chance here, so `seed` changes nothing."""
        counts = _counts(dataset, indices)
        sources = np.flatnonzero(counts.sum(axis=1))
        class_count = len(dataset.class_names)
        shares = self.shares or _evenly(class_count, len(sources))
        if len(shares) != len(sources) or sum(shares) != class_count:
            raise ValueError(
                f"shares must name {len(sources)} sources and add up to {class_count} classes; got {shares}. "
                f"For {dataset.name} take {_evenly(class_count, len(sources))}, say."
            )
        classes = np.arange(class_count)
        if self.order is not None:
            np.random.default_rng(self.order).shuffle(classes)
        keeps = np.zeros_like(counts)
        keeps[np.repeat(sources, shares), classes] = 1
        return _kept(dataset, indices, counts * keeps, seed)


@dataclass(frozen=True)
class LongTail:
    """In each source, class c keeps n_max · (1/ratio)^(c / (K-1)) images, where it has so many; at least one.

    ratio: how many times more images the first class has than the last; 64 in the paper.
    """

    ratio: int | float = 64

    def __post_init__(self) -> None:
        if not self.ratio >= 1:
            raise ValueError(f"ratio is the first class's count over the last one's, 1 or more; got {self.ratio}.")

    def apply(self, dataset: Domains, indices: Indices, seed: int) -> Indices:
        """Those of `indices` that stay."""
        counts = _counts(dataset, indices)
        along = np.arange(counts.shape[1]) / max(counts.shape[1] - 1, 1)
        wanted = counts.max(axis=1, keepdims=True) * self.ratio**-along
        return _kept(dataset, indices, np.minimum(counts, np.maximum(wanted.round().astype(np.int64), 1)), seed)


def scenario(name: str) -> Scenario:
    """A scenario from its name and, after a colon, its setting.

    "original"; "data-imbalanced" or "data-imbalanced:0.8"; "class-imbalanced", "class-imbalanced:3/2/2" or, with the
    classes shuffled by seed 7, "class-imbalanced:3/2/2,order=7"; "long-tailed" or "long-tailed:64".
    """
    kind, _, setting = name.partition(":")
    try:
        match kind, setting:
            case "original", "":
                return Original()
            case "data-imbalanced", _:
                return DataImbalance(float(setting or 0.8))
            case "class-imbalanced", _:
                shares, _, order = setting.partition(",order=")
                return ClassImbalance(
                    tuple(int(share) for share in shares.split("/")) if shares else None, int(order) if order else None
                )
            case "long-tailed", _:
                return LongTail(float(setting or 64))
    except ValueError as mistake:
        raise ValueError(f"scenario {name!r}: {mistake}") from None
    raise KeyError(
        f"there is no scenario {name!r}; it is one of original, data-imbalanced[:0.8], class-imbalanced[:3/2/2], "
        f"long-tailed[:64]."
    )


def save_indices(path: Path, dataset: Domains, indices: Indices, about: str) -> None:
    """Write which images were chosen, by name, with a checksum.

    about: what chose them, "class-imbalanced:3/2/2 seed 0".
    """
    files = [dataset.files[index] for index in indices]
    content = {"dataset": dataset.name, "about": about, "sha256": _checksum(files), "files": files}
    with atomically(path) as draft:
        draft.write_text(json.dumps(content, indent=0) + "\n")


def load_indices(path: Path, dataset: Domains) -> Indices:
    """The indices that `save_indices` wrote, in `dataset` as it is here."""
    try:
        content = json.loads(path.read_text())
        name, files, checksum = content["dataset"], content["files"], content["sha256"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as damage:
        raise ValueError(f"{path} is no index file ({damage}).") from None
    if checksum != _checksum(files):
        raise ValueError(f"{path} does not match its checksum; it was changed after it was written.")
    number = {file: index for index, file in enumerate(dataset.files)}
    unknown = [file for file in files if file not in number]
    if name != dataset.name or unknown:
        raise ValueError(
            f"{path} chooses from {name}, {len(files)} images; {len(unknown)} of them are not in this {dataset.name}."
        )
    return np.array([number[file] for file in files], dtype=np.int64)


def _counts(dataset: Domains, indices: Indices) -> Indices:
    return dataset.only(indices).counts()


def _kept(dataset: Domains, indices: Indices, counts: Indices, seed: int) -> Indices:
    """Of each domain and class as many as `counts` says, drawn by `seed`; in the order of `indices`."""
    kept = np.zeros(len(indices), dtype=bool)
    for (domain, class_), count in np.ndenumerate(counts):
        here = np.flatnonzero((dataset.domains[indices] == domain) & (dataset.classes[indices] == class_))
        # a seed for each, so that what one class loses does not depend on the others
        kept[np.random.default_rng((seed, int(domain), int(class_))).permutation(here)[:count]] = True
    return indices[kept]


def _shared(counts: Indices, total: int) -> Indices:
    """`total` shared out in proportion to `counts`, in whole numbers: each rounded down, the largest remainders up."""
    exact = counts * (total / counts.sum())
    shared: Indices = exact.astype(np.int64)
    shared[np.argsort(shared - exact, kind="stable")[: total - shared.sum()]] += 1
    return shared


def _evenly(classes: int, sources: int) -> tuple[int, ...]:
    return tuple(classes // sources + (source < classes % sources) for source in range(sources))


def _checksum(files: Sequence[str]) -> str:
    return sha256("\n".join(files).encode()).hexdigest()
