"""Taking in a dataset from a zip, a tar or a folder, without trusting it.

Nothing is written outside the new folder, links and devices are refused, size and count are limited, and the dataset is
there whole or not at all.
"""

import gzip
import lzma
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from styleshift.data.catalog.folder import Folder
from styleshift.data.domains import Domains
from styleshift.data.roots import catalogued, data_root

CHUNK = 1 << 20
# what broken archives raise, whichever way they are packed; RuntimeError: with a password
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)
# a letter or a digit first, so that no name is hidden or a way out
ALLOWED_IN_NAMES = set("abcdefghijklmnopqrstuvwxyz0123456789_-.")


@dataclass(frozen=True)
class Limits:
    """What is taken in at most.

    files: how many files; DomainNet, the largest set known here, has 586,575.
    bytes: how many bytes they unpack to.
    """

    files: int = 2_000_000
    bytes: int = 200 * 2**30


def import_dataset(source: Path, name: str, root: Path | None = None, limits: Limits | None = None) -> Domains:
    """Copy the dataset in `source` below the data root as `name`, and load it.

    source: a zip, a tar (also compressed) or a folder; one folder around everything is peeled off.
    name: a dataset of the catalog ("pacs"), or a name of one's own for domain/class/file.
    root: the folder that datasets lie in; see `roots.data_root`.
    """
    entry = catalogued(name)
    folder_name = entry.facts.folder if entry else _own_name(name)
    place = data_root(root) / folder_name
    if place.exists():
        raise FileExistsError(f"{place} is there already; move it away, or take another name.")
    if not source.exists():
        raise FileNotFoundError(f"there is no file or folder {source}.")
    place.parent.mkdir(parents=True, exist_ok=True)
    with _vanishing_folder(place) as draft:
        _copy(source, draft, limits or Limits())
        content = _peeled(draft)
        try:
            dataset = (entry or Folder()).load(content)
        except (ValueError, FileNotFoundError) as mistake:
            # the draft is hidden, and gone when this is read
            kind = FileNotFoundError if isinstance(mistake, FileNotFoundError) else ValueError
            raise kind(str(mistake).replace(str(content), str(source))) from None
        content.replace(place)
    below = place / dataset.root.relative_to(content)
    return replace(dataset, root=below, name=dataset.name if entry else folder_name)


@contextmanager
def _vanishing_folder(place: Path) -> Iterator[Path]:
    """A folder beside `place` that is gone afterwards, whatever is left in it."""
    draft = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy(source: Path, draft: Path, limits: Limits) -> None:
    try:
        if source.is_dir():
            members = _of_folder(source)
        elif zipfile.is_zipfile(source):
            members = _of_zip(source)
        elif tarfile.is_tarfile(source):
            members = _of_tar(source)
        else:
            raise ValueError(f"{source} is neither a zip, a tar nor a folder.")
        _write_all(members, draft, limits)
    except DAMAGE as damage:
        raise ValueError(f"{source} cannot be unpacked ({damage}).") from None


def _write_all(members: Iterator[tuple[str, IO[bytes]]], draft: Path, limits: Limits) -> None:
    room = limits.bytes
    for number, (name, content) in enumerate(members, start=1):
        if number > limits.files:
            raise ValueError(f"more than {limits.files} files; that is no dataset this takes in.")
        target = draft / _safe(name)
        with _new(target, name) as file:
            # the sizes an archive states may lie, so what comes out is counted
            while chunk := content.read(min(CHUNK, room + 1)):
                room -= len(chunk)
                if room < 0:
                    raise ValueError(
                        f"more than {limits.bytes / 2**30:.3g} GiB unpacked; that is more than is taken in."
                    )
                file.write(chunk)


def _new(target: Path, name: str) -> BinaryIO:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise ValueError(
            f"{name!r} is in it twice, or is both a file and a folder; nothing was taken in. Pack it again."
        ) from None


def _safe(name: str) -> Path:
    """A member's path; ValueError when it leads out of the folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0] or "\0" in name:
        raise ValueError(f"the file name {name!r} leads out of the dataset's folder; nothing was taken in.")
    return Path(*path.parts)


def _of_folder(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.is_symlink():
            raise ValueError(f"{name} is a link; replace it by what it points to.")
        if path.is_file():
            with path.open("rb") as content:
                yield name, content
        elif not path.is_dir():
            raise ValueError(f"{name} is neither a file nor a folder.")


def _of_zip(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"{member.filename} is a link or a device; only files and folders are taken in.")
            if not member.is_dir():
                with archive.open(member) as content:
                    yield member.filename, content


def _of_tar(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(source) as archive:
        for member in archive:
            if not (member.isfile() or member.isdir()):
                raise ValueError(f"{member.name} is a link or a device; only files and folders are taken in.")
            content = archive.extractfile(member)
            if content is not None:
                yield member.name, content
        # a compressed tar says at its very end, after what tar reads, whether it is whole
        while archive.fileobj is not None and archive.fileobj.read(CHUNK):
            pass


def _peeled(folder: Path) -> Path:
    """The folder inside, while there is nothing else; Macintosh's and hidden leftovers do not count."""
    while True:
        inside = [path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX"))]
        if len(inside) != 1 or not inside[0].is_dir() or _holds_classes(inside[0]):
            return folder
        folder = inside[0]


def _holds_classes(folder: Path) -> bool:
    """Whether this is a domain already: files two folders down, none further."""
    return any(folder.glob("*/*.*")) and not any(path.is_dir() for path in folder.glob("*/*"))


def _own_name(name: str) -> str:
    if not name or not set(name.lower()) <= ALLOWED_IN_NAMES or not name[0].isalnum():
        raise ValueError(
            f"a dataset's name is letters, digits, '-', '_' and '.', a letter or digit first; got {name!r}."
        )
    return name
