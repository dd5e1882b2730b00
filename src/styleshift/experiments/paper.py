"""The paper's own figures, as printed: every table, every figure with a protocol behind it, and the known misprints.

The numbers are data (`paper_tables.json` beside this file). Where a printed number cannot be right, `Misprint` says
which and why; the printed one is still what is shown.
"""

import difflib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pydantic import TypeAdapter


@dataclass(frozen=True)
class Misprint:
    """A printed number that contradicts others of the paper: what is printed, what was probably meant, and why."""

    method: str
    column: str
    printed: float
    meant: float
    why: str

    def __str__(self) -> str:
        return f"{self.method}, {self.column}: the paper prints {self.printed:.2f}, but {self.why}"


@dataclass(frozen=True)
class PaperRow:
    """One line of a table: the method as printed, one value a column; quoted: copied by the paper from other papers."""

    method: str
    values: tuple[float, ...]
    quoted: bool


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, or a figure (no rows: its values are not printed)."""

    name: str
    title: str
    where: str
    label: str
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    misprints: tuple[Misprint, ...] = ()

    def value(self, method: str, column: str) -> float | None:
        """What is printed for `method` in `column`, or None."""
        if column not in self.columns:
            return None
        place = self.columns.index(column)
        return next((row.values[place] for row in self.rows if row.method == method), None)


@cache
def paper_tables() -> dict[str, PaperTable]:
    """Every table and figure by name, in the paper's order."""
    text = (resources.files(__package__) / "paper_tables.json").read_text(encoding="utf-8")
    return {table.name: table for table in TypeAdapter(list[PaperTable]).validate_json(text)}


def paper_table(name: str) -> PaperTable:
    """The table called `name`. KeyError with near names if there is none."""
    tables = paper_tables()
    if name not in tables:
        near = difflib.get_close_matches(name, tables) or list(tables)
        raise KeyError(f"the paper has no table {name!r}; did you mean one of {', '.join(near)}?")
    return tables[name]
