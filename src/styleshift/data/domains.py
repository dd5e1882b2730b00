"""`Domains`: images with a class and a domain each, S_1 ... S_N and the targets; the one type every dataset returns.

A dataset is a list of files below one folder; the pixels stay where they are until `cache.decoded` or
`files.ImageFiles` reads them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Domains:
    """Images with a class and a domain each.

    name: the dataset's name as people write it, "PACS".
    root: the folder that `files` are relative to.
    files: one path an image, POSIX separators, in a fixed order; an image's place in it is its index everywhere.
    classes: ``[n]``, 0..K-1, the place in `class_names`.
    domains: ``[n]``, 0..N-1, the place in `domain_names`.
    class_names: K names.
    domain_names: N names, alphabetical in every dataset of the catalog.
    lists: ``[n, 3]`` or None: how many rows of the published train, validation and test lists name each file.
    """

    name: str
    root: Path
    files: tuple[str, ...]
    classes: Indices
    domains: Indices
    class_names: tuple[str, ...]
    domain_names: tuple[str, ...]
    lists: Indices | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _labels(self.classes, self, "classes", self.class_names))
        object.__setattr__(self, "domains", _labels(self.domains, self, "domains", self.domain_names))
        if self.lists is not None and self.lists.shape != (len(self.files), 3):
            raise ValueError(
                f"{self.name}: lists must be [{len(self.files)}, 3], one row a file; got {self.lists.shape}."
            )

    def __len__(self) -> int:
        return len(self.files)

    def path(self, index: SupportsIndex) -> Path:
        """Where the image with this index is."""
        return self.root / self.files[index]

    def only(self, indices: ArrayLike) -> "Domains":
        """The images with these indices, in this order; class and domain names keep their numbers."""
        chosen = np.asarray(indices, dtype=np.int64)
        return replace(
            self,
            files=tuple(self.files[index] for index in chosen),
            classes=self.classes[chosen],
            domains=self.domains[chosen],
            lists=None if self.lists is None else self.lists[chosen],
        )

    def counts(self) -> Indices:
        """``[N, K]``: how many images each domain has of each class."""
        table = np.zeros((len(self.domain_names), len(self.class_names)), dtype=np.int64)
        np.add.at(table, (self.domains, self.classes), 1)
        return table

    def domain(self, name: str) -> int:
        """A domain's number, by its name, any spelling of it ("RealWorld") or a beginning of its own ("art")."""
        return self.domain_names.index(matching(name, self.domain_names, f"{self.name} has no domain"))

    def table(self) -> str:
        """The domain×class table as text: a row for each class, a column for each domain, and the totals."""
        counts = self.counts().T
        rows = [[name, *map(str, row), str(row.sum())] for name, row in zip(self.class_names, counts, strict=True)]
        total = ["total", *map(str, counts.sum(axis=0)), str(counts.sum())]
        return _aligned([["", *self.domain_names, "total"], *rows, total])


def some_of_each(domains: Indices, limit: int | None, seed: int = 0) -> Indices:
    """The places of at most `limit` images of each domain, drawn at random and put in order; None takes all."""
    shuffled = np.random.default_rng(seed).permutation(len(domains))
    return np.sort(np.concatenate([shuffled[domains[shuffled] == n][:limit] for n in np.unique(domains)]))


def matching(name: str, names: Sequence[str], complaint: str) -> str:
    """The one of `names` that `name` spells or begins; KeyError opening with `complaint` when none or several do."""
    wanted = plain(name)
    for fits in (str.__eq__, str.startswith):
        found = [known for known in names if wanted and fits(plain(known), wanted)]
        if len(found) == 1:
            return found[0]
    near = found or get_close_matches(name.lower(), names, n=3, cutoff=0.5) or names
    raise KeyError(f"{complaint} {name!r}; did you mean one of {', '.join(near)}?")


def plain(name: str) -> str:
    """A name without case, spaces and punctuation, in which "Real World" and "real_world" are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _labels(given: ArrayLike, dataset: Domains, what: str, names: tuple[str, ...]) -> Indices:
    labels = np.array(given)
    if labels.shape != (len(dataset.files),):
        raise ValueError(
            f"{dataset.name}: {what} must hold one number a file ({len(dataset.files)}); got shape {labels.shape}."
        )
    if not np.issubdtype(labels.dtype, np.integer) and labels.size:
        raise TypeError(f"{dataset.name}: {what} must be integers, 0..{len(names) - 1}; got {labels.dtype}.")
    outside = np.flatnonzero((labels < 0) | (labels >= len(names)))
    if outside.size:
        first = outside[0]
        raise ValueError(
            f"{dataset.name}: {what} must lie in 0..{len(names) - 1} ({len(names)} names); "
            f"{dataset.files[first]} has {labels[first]}, and so have {outside.size - 1} more a number outside."
        )
    labels = labels.astype(np.int64)
    labels.setflags(write=False)
    return labels


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(line) for line in lines)
