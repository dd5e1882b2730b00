"""The decoded cache: all images of a dataset at one size, one uint8 memory map on disk.

Built once, in parallel; found again by the dataset's content; shared by every process that trains on it. Its file:

    4,096 bytes     JSON: format, key, count, size, sha256 of the pixels; at the end the sha256 of all that
    the pixels      [n, size, size, 3], row after row

The short side is resized to `size` with Pillow's bilinear filter, which smooths as it shrinks; the middle square is
kept.
Pixels lie next to their colours (NHWC): a batch taken from it is already channels_last, and crops are whole rows.

A process compares the pixels with their checksum when it first opens a file, and builds a damaged one again. Only files
that would take too long (`COMPARED`) are trusted; there is `Decoded.verify` for those.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from styleshift.data.content import content_key
from styleshift.data.decoding import DamagedImageError, Progress, decoded_all, rgb, square
from styleshift.data.domains import Domains, plain
from styleshift.data.locking import locked, remove_drafts
from styleshift.data.roots import user_cache
from styleshift.writing import atomically

log = logging.getLogger(__name__)

FORMAT = 1
HEADER = 4096
COMPARED = 4 * 2**30  # bytes: some seconds, with the file in memory afterwards. PACS at 224 has 1.5 GB

_compared: set[tuple[object, ...]] = set()  # the files, as they were, that this process has found sound


@dataclass(frozen=True, eq=False)
class Decoded:
    """The images of a dataset, decoded.

    images: ``[n, 3, size, size]`` uint8, a read-only view of the file, in the dataset's order.
    key: the content of the dataset; the same on every machine.
    size: side of the images.
    path: the file.
    """

    images: NDArray[np.uint8]
    key: str
    size: int
    path: Path

    def take(self, indices: Sequence[int] | NDArray[np.int64] | torch.Tensor) -> torch.Tensor:
        """``[B, 3, size, size]`` uint8, channels_last: a copy of the images with these indices."""
        rows = np.take(self.images.transpose(0, 2, 3, 1), np.asarray(indices, dtype=np.int64), axis=0)
        return torch.from_numpy(rows).permute(0, 3, 1, 2)

    def verify(self) -> None:
        """Compare every pixel with the checksum; ValueError when they differ."""
        if _pixels_digest(self.path) != _header(self.path).get("pixels"):
            raise ValueError(f"{self.path} does not match its checksum. Delete it; it is built again when needed.")


def decoded(
    dataset: Domains,
    size: int,
    folder: Path | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Decoded:
    """The images of `dataset` at `size`, from the cache where they are, else decoded into it first.

    size: side of the square images, as a transform's `cache_size`.
    folder: where caches are kept; None takes `styleshift` in the user's cache folder.
    progress: called with how many images are decoded and how many there are; see `progress.bar`.
    workers: threads that decode; None takes one for each core.
    """
    if not len(dataset):
        raise ValueError(f"{dataset.name} has no images to decode.")
    folder = folder or user_cache()
    folder.mkdir(parents=True, exist_ok=True)
    key = content_key(dataset, folder, workers)
    path = folder / f"{plain(dataset.name)}-{key[:16]}-{size}.u8"
    about = {"format": FORMAT, "key": key, "count": len(dataset), "size": size}
    if not _is_sound(path, about):
        with locked(path.with_suffix(".lock")):
            # another process may have built it while this one waited
            if not _is_sound(path, about):
                _build(dataset, path, about, progress, workers)
    pixels = np.memmap(path, dtype=np.uint8, mode="r", offset=HEADER, shape=(len(dataset), size, size, 3))
    return Decoded(pixels.transpose(0, 3, 1, 2), key, size, path)


def _build(dataset: Domains, path: Path, about: dict[str, Any], progress: Progress | None, workers: int | None) -> None:
    if path.exists():
        log.warning("%s is damaged; building it again", path)
    remove_drafts(path)
    size = int(about["size"])
    _make_sure_of_space(path.parent, HEADER + len(dataset) * size * size * 3)

    def pixels_of(file: str) -> bytes | DamagedImageError:
        try:
            return square(rgb(dataset.root / file), size).tobytes()
        except DamagedImageError as damage:
            return damage

    digest = hashlib.sha256()
    damaged = []
    with atomically(path) as draft, draft.open("wb") as file:
        file.seek(HEADER)
        for pixels in decoded_all(pixels_of, dataset.files, workers, progress):
            if isinstance(pixels, DamagedImageError):
                damaged.append(pixels)
            else:
                digest.update(pixels)
                file.write(pixels)
        if damaged:
            raise ValueError(_all_damaged(dataset, damaged))
        file.seek(0)
        file.write(_header_bytes(about | {"pixels": digest.hexdigest()}))
    log.info("decoded %d images of %s into %s", len(dataset), dataset.name, path)


def _is_sound(path: Path, about: dict[str, Any]) -> bool:
    """Whether the file is whole and, once for each process, its pixels are those that were written."""
    if not _is_whole(path, about):
        return False
    status = path.stat()
    file = (path.resolve(), status.st_ino, status.st_size, status.st_mtime_ns)
    if file not in _compared and status.st_size <= COMPARED and _pixels_digest(path) != _header(path).get("pixels"):
        return False
    _compared.add(file)
    return True


def _is_whole(path: Path, about: dict[str, Any]) -> bool:
    """Whether the file's length and header are what they should be; the pixels are not read."""
    if not path.is_file() or path.stat().st_size != HEADER + about["count"] * about["size"] ** 2 * 3:
        return False
    return about.items() <= _header(path).items()


def _header_bytes(about: dict[str, Any]) -> bytes:
    text = json.dumps(about).encode().ljust(HEADER - 64)
    return text + hashlib.sha256(text).hexdigest().encode()


def _header(path: Path) -> dict[str, Any]:
    """What the header says; nothing when it is damaged."""
    with path.open("rb") as file:
        header = file.read(HEADER)
    text, digest = header[:-64], header[-64:]
    if hashlib.sha256(text).hexdigest().encode() != digest:
        return {}
    about: dict[str, Any] = json.loads(text)
    return about


def _pixels_digest(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(HEADER)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make_sure_of_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"the decoded cache needs {needed / 2**30:.1f} GiB in {folder}, where {free / 2**30:.1f} GiB are free; "
            f"make room or give another folder."
        )


def _all_damaged(dataset: Domains, damaged: Sequence[DamagedImageError]) -> str:
    first = "; ".join(map(str, damaged[:3])) + ("; ..." if len(damaged) > 3 else "")
    return (
        f"{dataset.name}: {len(damaged)} of {len(dataset)} images cannot be used: {first}. "
        f"Replace or remove them; `styleshift data check` lists them all."
    )
