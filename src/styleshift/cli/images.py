"""IMAGES on the command line: files and folders, read and prepared batch by batch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from styleshift.data.decoding import rgb, square
from styleshift.data.layouts import IMAGE_ENDINGS
from styleshift.data.transforms import transform

BATCH = 64


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The images among `paths` and below those that are folders. ValueError where there is none."""
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise ValueError(f"no image in {', '.join(map(str, paths))}")
    return files


def batches_of(files: Sequence[Path], prepared: str) -> Iterator[tuple[Sequence[Path], Tensor]]:
    """Some files and their images `[B, 3, H, W]`, as the test transform called `prepared` makes them."""
    how = transform(prepared)
    for first in range(0, len(files), BATCH):
        some = files[first : first + BATCH]
        pixels = np.stack([np.asarray(square(rgb(file), how.cache_size)) for file in some])
        yield some, how.test(torch.from_numpy(pixels).permute(0, 3, 1, 2))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix.lower() in IMAGE_ENDINGS)
    if not path.exists():
        raise FileNotFoundError(f"no file or folder {path}")
    return [path]
