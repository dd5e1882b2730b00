"""A dataset's content as one key: the same images with the same labels in the same order, wherever they lie.

The key covers every byte of every file. So that this is not read again at each start, the key is remembered under the
files' sizes and times of change.
"""

import hashlib
from pathlib import Path

from styleshift.data.decoding import decoded_all
from styleshift.data.domains import Domains
from styleshift.writing import atomically


def content_key(dataset: Domains, folder: Path, workers: int | None = None) -> str:
    """The sha256, in hexadecimal, over names, classes, domains and bytes of all images.

    folder: where the key is remembered.
    """
    memo = folder / "keys" / _unchanged(dataset)
    if memo.is_file() and len(remembered := memo.read_text()) == 64:
        return remembered
    key = hashlib.sha256()
    hashes = decoded_all(lambda file: _bytes_digest(dataset.root / file), dataset.files, workers)
    for line, digest in zip(_labels(dataset), hashes, strict=True):
        key.update(f"{line}\t{digest}\n".encode())
    with atomically(memo) as draft:
        draft.write_text(key.hexdigest())
    return key.hexdigest()


def _unchanged(dataset: Domains) -> str:
    """A digest that changes when a file is replaced, touched or moved."""
    signature = hashlib.sha256(str(dataset.root.resolve()).encode())
    missing = []
    for line, file in zip(_labels(dataset), dataset.files, strict=True):
        try:
            status = (dataset.root / file).stat()
            signature.update(f"{line}\t{status.st_size}\t{status.st_mtime_ns}\n".encode())
        except FileNotFoundError:
            missing.append(file)
    if missing:
        raise ValueError(f"{dataset.name}: {len(missing)} of {len(dataset)} files are missing, {missing[0]} for one.")
    return signature.hexdigest()


def _labels(dataset: Domains) -> list[str]:
    rows = zip(dataset.files, dataset.classes, dataset.domains, strict=True)
    return [f"{file}\t{dataset.class_names[class_]}\t{dataset.domain_names[domain]}" for file, class_, domain in rows]


def _bytes_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
