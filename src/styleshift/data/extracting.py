"""Images out of Parquet files, as public mirrors keep them, into the folder tree domain/class/file."""

import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from styleshift.data.decoding import DAMAGE, Progress
from styleshift.data.extras import pyarrow_parquet
from styleshift.data.facts import Facts, Mirror
from styleshift.data.manifests import pixel_digest

ROWS = 256
ENDINGS = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "BMP": ".bmp", "WEBP": ".webp", "TIFF": ".tif"}


@dataclass(frozen=True)
class Row:
    """An image as a mirror has it: the bytes of its file, its name there (perhaps none), its domain and class."""

    content: bytes
    name: str
    domain: str
    class_: str


def extract(
    tables: Sequence[Path], folder: Path, facts: Facts, files: Mapping[str, str], progress: Progress | None = None
) -> int:
    """Write each image of the tables to domain/class/file below `folder`; gives how many there were.

    Where the mirror keeps the published lists apart, they are written, too: `splits/DOMAIN_train.txt` and so on.

    facts: names the domains and classes, and in its mirror the columns.
    files: the published path of an image by the digest of its pixels; where it is empty, images keep the mirror's
        names, or get numbers.
    progress: called with how many images are written and how many there are.
    """
    parquet = pyarrow_parquet()
    total = sum(parquet.ParquetFile(table).metadata.num_rows for table in tables)
    assert facts.mirror is not None
    written = 0
    lists: defaultdict[str, list[str]] = defaultdict(list)
    for table in tables:
        for row in _rows(parquet.ParquetFile(table), table, facts.mirror):
            place = _published(row, files, facts) if files else _named(row, written, facts, folder)
            if facts.mirror.lists:
                lists[f"{place.partition('/')[0]}_{table.name.partition('-')[0]}.txt"].append(place)
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(row.content)
            written += 1
            if progress:
                progress(written, total)
    _write_lists(folder / "splits", lists)
    return written


def _write_lists(folder: Path, lists: Mapping[str, Sequence[str]]) -> None:
    """Each as the authors' are: a line for an image, its path and its class's number."""
    classes = sorted({file.split("/")[1] for files in lists.values() for file in files})
    number = {class_: place for place, class_ in enumerate(classes)}
    for name, files in lists.items():
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{file} {number[file.split('/')[1]]}\n" for file in files]
        (folder / name).write_text("".join(lines), encoding="utf-8")


def _rows(file: Any, table: Path, mirror: Mirror) -> Iterator[Row]:
    schema = file.schema_arrow
    missing = [column for column in mirror.columns if column not in schema.names]
    if missing:
        raise ValueError(
            f"{table.name} of {mirror.repository} has columns {', '.join(schema.names)}, and no {missing[0]}."
        )
    domain_names, class_names = (_label_names(schema, column) for column in mirror.columns[1:])
    for batch in file.iter_batches(batch_size=ROWS, columns=list(mirror.columns)):
        for image, domain, class_ in zip(*(batch.column(name).to_pylist() for name in mirror.columns), strict=True):
            name = PurePosixPath((image["path"] or "").replace("\\", "/")).name
            yield Row(image["bytes"], name, _text(domain, domain_names), _text(class_, class_names))


def _label_names(schema: Any, column: str) -> list[str]:
    """The names that a column's numbers stand for; none where it holds text."""
    described = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    names: list[str] = described.get("info", {}).get("features", {}).get(column, {}).get("names") or []
    return names


def _text(value: object, names: list[str]) -> str:
    return names[value] if isinstance(value, int) and names else str(value)


def _published(row: Row, files: Mapping[str, str], facts: Facts) -> str:
    """The published path of the image with these pixels; or with this name, since JPEG decoders may differ in a bit."""
    file = files.get(pixel_digest(np.asarray(_opened(row).convert("RGB"))))
    by_name = f"{facts.names.domain(row.domain)}/{facts.names.class_(row.class_)}/{row.name}"
    if file is None and by_name in files.values():
        file = by_name
    if file is None:
        raise ValueError(
            f"{_mirror(facts)} has a {row.class_} in {row.domain} ({row.name or 'no name'}) that is none of "
            f"{facts.title}'s images. {facts.how}"
        )
    return file


def _named(row: Row, number: int, facts: Facts, folder: Path) -> str:
    domain, class_ = facts.names.domain(row.domain), facts.names.class_(row.class_)
    if domain is None or class_ is None:
        raise ValueError(f"{_mirror(facts)} has an image of domain {row.domain!r}, class {row.class_!r}, unknown here.")
    place = "/".join(PurePosixPath(part).name for part in (domain, class_))
    if row.name and not (folder / place / row.name).exists():
        return f"{place}/{row.name}"
    return f"{place}/{number:06}{ENDINGS.get(_opened(row).format or '', '.png')}"


def _opened(row: Row) -> Image.Image:
    try:
        return Image.open(io.BytesIO(row.content))
    except DAMAGE as damage:
        raise ValueError(f"a {row.class_} in {row.domain} ({row.name or 'no name'}) is no image ({damage}).") from None


def _mirror(facts: Facts) -> str:
    return facts.mirror.repository if facts.mirror else facts.title
