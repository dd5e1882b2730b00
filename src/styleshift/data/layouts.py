"""Folder layouts that datasets with domains come in, read into `Domains`.

    tree     domain/class/file, and domain/part/class/file where a dataset ships its train, validation and test parts
    home     the folder in which the domains begin
    Names    a dataset's domains and classes, and the other spellings they are found under

Only names are read here; nothing is decoded.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from styleshift.data.domains import Domains, Indices, plain

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# "full" repeats train and crossval in the VLCS archive
PARTS = {"train": 0, "crossval": 1, "val": 1, "validation": 1, "test": 2, "full": -1}


@dataclass(frozen=True)
class Names:
    """A dataset's domains and classes.

    domains: in their fixed order; empty takes every folder there is, alphabetically.
    classes: in their fixed order, 0..K-1; empty takes the union over the domains, alphabetically.
    spellings: other names of folders, and which domain or class they are: {"VOC2007": "pascal"}.
    """

    domains: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)

    def domain(self, folder: str) -> str | None:
        """The domain a folder's name means; None when it means none."""
        return self._meant(folder, self.domains)

    def class_(self, folder: str) -> str | None:
        """The class a folder's name means; None when it means none."""
        return self._meant(folder, self.classes)

    def _meant(self, folder: str, known: tuple[str, ...]) -> str | None:
        if not known:
            return folder
        spelled = {plain(name): name for name in known}
        spelled |= {plain(other): name for other, name in self.spellings.items() if name in known}
        return spelled.get(plain(folder))


class Place(NamedTuple):
    """One image, from where it lies; `part` is a column of `Domains.lists`."""

    file: str
    domain: str
    class_: str
    part: int | None = None


def tree(root: Path, name: str, names: Names | None = None) -> Domains:
    """The images below `root`, which lie in domain/class/file or domain/part/class/file.

    A domain may lack classes. Folders that are none of the known domains (`splits`, `__MACOSX`) are passed over.
    """
    names = names or Names()
    return gathered(root, name, list(_places(images_below(root), names, name)), names)


def gathered(root: Path, name: str, places: Sequence[Place], names: Names) -> Domains:
    """`Domains` of these images; the names not given are those that occur, alphabetically."""
    domain_names = names.domains or tuple(sorted({place.domain for place in places}))
    class_names = names.classes or tuple(sorted({place.class_ for place in places}))
    domain_number = {domain: number for number, domain in enumerate(domain_names)}
    class_number = {class_: number for number, class_ in enumerate(class_names)}
    return Domains(
        name=name,
        root=root,
        files=tuple(place.file for place in places),
        classes=np.array([class_number[place.class_] for place in places], dtype=np.int64),
        domains=np.array([domain_number[place.domain] for place in places], dtype=np.int64),
        class_names=class_names,
        domain_names=domain_names,
        lists=_lists([place.part for place in places]),
    )


def home(root: Path, title: str, names: Names, how: str) -> Path:
    """The folder at or below `root` in which all domains begin; `how` ends the message when there is none."""
    candidates = [root, *(root / folder for folder in ("images", "kfold"))]
    found: set[str] = set()
    for candidate in candidates:
        here = (
            {names.domain(folder.name) for folder in candidate.iterdir() if folder.is_dir()}
            if candidate.is_dir()
            else set()
        )
        if here >= set(names.domains):
            return candidate
        found |= {domain for domain in here if domain is not None}
    missing = ", ".join(domain for domain in names.domains if domain not in found)
    raise FileNotFoundError(f"{title} is not in {root}: no folder for {missing}. {how}")


def images_below(root: Path) -> list[str]:
    """Every image file below `root`, relative, sorted, POSIX separators; hidden files and folders are passed over."""
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}.")
    files = sorted(_walked(str(root), ""))
    if not files:
        raise ValueError(
            f"{root} holds no images ({', '.join(IMAGE_ENDINGS[:4])}, ...); expected domain/class/file below it."
        )
    return files


def _walked(folder: str, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _walked(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.lower().endswith(IMAGE_ENDINGS):
                yield prefix + entry.name


def _places(files: Sequence[str], names: Names, title: str) -> Iterator[Place]:
    for file in files:
        folders = file.split("/")[:-1]
        domain = names.domain(folders[0]) if folders else None
        if domain is None and names.domains:
            continue
        part = PARTS.get(folders[1].lower()) if len(folders) == 3 else None
        if part == -1:
            continue
        if domain is None or not (len(folders) == 2 or part is not None):
            raise ValueError(f"{title}: images must lie in domain/class/file; {file} does not. Move or remove it.")
        class_ = names.class_(folders[-1])
        if class_ is None:
            raise ValueError(f"{title}: {file} lies in no class of this dataset, which are {_some(names.classes)}.")
        yield Place(file, domain, class_, part)


def _lists(parts: Sequence[int | None]) -> Indices | None:
    """A column each for train, validation and test; without a test part the whole of a target is its test set."""
    if not parts or None in parts:
        return None
    lists = np.zeros((len(parts), 3), dtype=np.int64)
    lists[np.arange(len(parts)), np.array(parts)] = 1
    if not lists[:, 2].any():
        lists[:, 2] = 1
    return lists


def _some(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
