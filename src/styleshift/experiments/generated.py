"""Images drawn instead of read, for the smoke scale: domains with styles and classes with shapes, from numbers alone.

A domain is a pair of colours and a grain; a class is the direction and width of stripes.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from styleshift.data.domains import Domains
from styleshift.experiments.keys import hash_of
from styleshift.experiments.scales import Generated
from styleshift.writing import atomically, path_part

_VALIDATED = 3  # one image in so many is for validation


def generated(name: str, domain_names: tuple[str, ...], amount: Generated, folder: Path) -> Domains:
    """A dataset with these domains, its images written below `folder` where they are not there yet.

    It has published lists, as far as protocols can tell: every third image validates, and all of a target test.
    """
    about = {"domains": domain_names, **amount.model_dump()}
    root = folder / path_part(f"{name}-{hash_of(about)[:12]}")
    places = [
        (f"{domain}/class {number}/{image}.png", row, number, image)
        for row, domain in enumerate(_folders(domain_names))
        for number in range(amount.classes)
        for image in range(amount.images)
    ]
    for file, row, number, image in places:
        _write(root / file, _drawn(row, number, image, amount.size))
    validated = np.array([image % _VALIDATED == _VALIDATED - 1 for *_, image in places])
    return Domains(
        name=f"generated like {name}",
        root=root,
        files=tuple(file for file, *_ in places),
        classes=np.array([number for _, _, number, _ in places]),
        domains=np.array([row for _, row, _, _ in places]),
        class_names=tuple(f"class {number}" for number in range(amount.classes)),
        domain_names=domain_names,
        lists=np.stack([~validated, validated, np.ones(len(places), dtype=bool)], axis=1).astype(np.int64),
    )


def _folders(domain_names: tuple[str, ...]) -> tuple[str, ...]:
    """A folder for each domain: its name, unless one of them (any text, in a table) is no name of a folder."""
    if all(re.fullmatch(r"\w[\w .+-]{0,99}", name) for name in domain_names):
        return domain_names
    return tuple(f"domain {row}" for row in range(len(domain_names)))


def _drawn(domain: int, class_: int, image: int, size: int) -> NDArray[np.uint8]:
    draw = np.random.default_rng((domain, class_, image))
    style = np.random.default_rng(domain)
    dark, light = style.uniform(0, 120, 3), style.uniform(120, 255, 3)
    y, x = np.mgrid[:size, :size] / size
    angle = np.pi * class_ / 7
    stripes = np.sin((x * np.cos(angle) + y * np.sin(angle)) * (12 + class_) + draw.uniform(0, 6)) > 0
    picture = np.where(stripes[:, :, None], light, dark) + draw.normal(0, 8 * (1 + domain), (size, size, 3))
    return picture.clip(0, 255).astype(np.uint8)


def _write(path: Path, picture: NDArray[np.uint8]) -> None:
    if not path.exists():
        with atomically(path) as draft:
            Image.fromarray(picture).save(draft, format="PNG")
