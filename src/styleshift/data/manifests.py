"""A manifest: every image of a dataset by name, a digest of its pixels, and the published lists it stands in.

The digest is over decoded RGB pixels, so a file that was re-coded without loss (a grey PNG for an RGB one) is still the
same image. It is the first 16 bytes of a sha256: 9,991 images find no two alike by chance (2^-102), at half the size.
Lossy files are compared as libjpeg-turbo decodes them, which Pillow's packages bring along.
"""

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from styleshift.data.decoding import decoded_all, rgb
from styleshift.data.domains import Domains, Indices

DIGEST_BYTES = 16
LISTS = ("train", "crossval", "test")


class Manifest(NamedTuple):
    """files: sorted. digests: one hexadecimal digest a file. lists: ``[n, 3]``, as `Domains.lists`."""

    files: tuple[str, ...]
    digests: tuple[str, ...]
    lists: Indices

    def save(self, path: Path) -> None:
        """Write gzip'ed text: a line a file, with its digest and its rows in the train, validation and test lists."""
        rows = zip(self.files, self.digests, self.lists, strict=True)
        text = "".join(f"{file}\t{digest}\t{''.join(map(str, row))}\n" for file, digest, row in rows)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_manifest(path: Path) -> Manifest:
    """The manifest that `Manifest.save` wrote."""
    rows = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    files, digests, lists = zip(*rows, strict=True)
    return Manifest(files, digests, np.array([[int(count) for count in row] for row in lists], dtype=np.int64))


def manifest_of(dataset: Domains, lists_folder: Path, workers: int | None = None) -> Manifest:
    """The manifest of a dataset; `lists_folder` holds its published `<domain>_{train,crossval,test}_kfold.txt`."""
    digests = tuple(decoded_all(lambda file: digest_of(dataset.root / file), dataset.files, workers))
    return Manifest(dataset.files, digests, listed(dataset.files, lists_folder))


def digest_of(path: Path) -> str:
    """The digest of an image file's pixels."""
    return pixel_digest(np.asarray(rgb(path)))


def pixel_digest(pixels: NDArray[np.uint8]) -> str:
    """The first 16 bytes, in hexadecimal, of the sha256 over RGB pixels ``[H, W, 3]``."""
    return hashlib.sha256(pixels.tobytes()).digest()[:DIGEST_BYTES].hex()


def listed(files: Sequence[str], folder: Path) -> Indices:
    """``[n, 3]``: how many rows of the train, crossval and test lists in `folder` name each file."""
    number = {file: index for index, file in enumerate(files)}
    counts = np.zeros((len(files), 3), dtype=np.int64)
    for column, kind in enumerate(LISTS):
        for path in sorted(folder.glob(f"*_{kind}_kfold.txt")):
            # the label is the folder's name; the lists' numbers have a mistake of their own
            names = [line.rsplit(" ", 1)[0] for line in path.read_text().splitlines() if line.strip()]
            np.add.at(counts[:, column], [number[name] for name in names], 1)
    return counts
