"""A table of the user's own: a CSV or Parquet file with a path, a class and a domain for each image."""

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from styleshift.data.domains import Domains
from styleshift.data.extras import pyarrow_parquet
from styleshift.data.facts import Facts
from styleshift.data.layouts import Names, Place, gathered


@dataclass(frozen=True)
class Table:
    """Images listed in a table, one row each.

    path, class_, domain: the names of its columns. Paths are relative to the table's folder, or absolute.
    """

    facts: ClassVar[Facts] = Facts(title="Table")

    path: str = "path"
    class_: str = "class"
    domain: str = "domain"

    def load(self, root: Path) -> Domains:
        """The table in the file `root`. Classes and domains are named by their text, in alphabetical order.

        Where all are whole numbers they are in order of size, so that "10" comes after "9". Whether the files are there
        is seen when they are decoded or checked.
        """
        if not root.is_file():
            raise FileNotFoundError(f"there is no table {root}.")
        columns = (self.path, self.class_, self.domain)
        rows = _parquet(root, columns) if root.suffix.lower() == ".parquet" else _csv(root, columns)
        if not rows:
            raise ValueError(f"{root} has no rows; expected columns {', '.join(columns)} and a row for each image.")
        folder, files = _below_one_folder(root, [row[0] for row in rows])
        places = [Place(file, domain, class_) for file, (_, class_, domain) in zip(files, rows, strict=True)]
        return gathered(folder, root.stem, places, _ordered(rows))


def _csv(table: Path, columns: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, delimiter="\t" if table.suffix.lower() == ".tsv" else ",")
            names, rows = list(reader.fieldnames or ()), list(reader)
    except (UnicodeDecodeError, csv.Error) as damage:
        raise ValueError(f"{table} is not a table of UTF-8 text ({damage}).") from None
    _check_columns(table, columns, names)
    return [_row(table, number, [row[column] for column in columns]) for number, row in enumerate(rows, start=2)]


def _parquet(table: Path, columns: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    parquet = pyarrow_parquet()
    try:
        names = parquet.read_schema(table).names
        read = parquet.read_table(table, columns=[name for name in names if name in columns]).to_pydict()
    except (OSError, ValueError) as damage:
        raise ValueError(f"{table} is not a whole Parquet file ({damage}).") from None
    _check_columns(table, columns, names)
    values = zip(*(read[column] for column in columns), strict=True)
    return [_row(table, number, list(row)) for number, row in enumerate(values, start=1)]


def _check_columns(table: Path, wanted: tuple[str, str, str], there: list[str]) -> None:
    lacking = [column for column in wanted if column not in there]
    if lacking:
        raise ValueError(f"{table} needs columns {', '.join(wanted)}; it has {', '.join(there) or 'none'}.")


def _row(table: Path, number: int, values: list[object]) -> tuple[str, str, str]:
    path, class_, domain = ("" if value is None else str(value).strip() for value in values)
    if not (path and class_ and domain):
        raise ValueError(f"{table}, row {number}: path, class and domain are all needed; got {values}.")
    return path, class_, domain


def _below_one_folder(table: Path, paths: list[str]) -> tuple[Path, list[str]]:
    """The folder that all files lie below, and each file's path from there."""
    folder = table.parent
    if any(Path(path).is_absolute() for path in paths):
        whole = [os.path.normpath(folder.resolve() / path) for path in paths]
        folder = Path(os.path.commonpath([os.path.dirname(path) for path in whole]))
        paths = [os.path.relpath(path, folder) for path in whole]
    return folder, [Path(path).as_posix() for path in paths]


def _ordered(rows: list[tuple[str, str, str]]) -> Names:
    """The names that occur; all integers are put in order of size, so that class "10" comes after "9"."""
    return Names(domains=_sorted({row[2] for row in rows}), classes=_sorted({row[1] for row in rows}))


def _sorted(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=int if all(name.isdecimal() for name in names) else None))
