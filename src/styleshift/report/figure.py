"""A figure: a drawing, its legend, words for who cannot see it, and its data to take away."""

import base64
import csv
import io
import json
from dataclasses import dataclass
from typing import Any

from styleshift.report.drawing import Shape

Value = str | float | int | bool | None
Rows = tuple[tuple[Value, ...], ...]
MOST_ROWS_TO_READ = 120  # of data shown as a table below the figure; longer ones are there to download


@dataclass(frozen=True)
class Key:
    """A line of the legend.

    series: what its button hides, as marks name it; empty where there is nothing to hide. colour: a class.
    """

    series: str
    name: str
    colour: str
    shape: Shape = "dot"
    dashed: bool = False


@dataclass(frozen=True)
class View:
    """One of several drawings of a figure; name: on its button, empty where there is only one."""

    name: str
    drawing: str


@dataclass(frozen=True)
class Data:
    """Plain values with names. name: an id in the page, and of the file to download."""

    name: str
    columns: tuple[str, ...]
    rows: Rows

    @property
    def readable(self) -> bool:
        """Whether it is short enough to be read as a table."""
        return len(self.rows) <= MOST_ROWS_TO_READ

    @property
    def csv_link(self) -> str:
        """As CSV, a link that holds it all."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return _data_link("text/csv", text.getvalue())

    @property
    def json_link(self) -> str:
        """As JSON, a list of objects."""
        objects: list[dict[str, Any]] = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return _data_link("application/json", json.dumps(objects, ensure_ascii=False, allow_nan=False))


@dataclass(frozen=True)
class Figure(Data):
    """Data with a drawing of it.

    caption: what it shows and how to read it, plain text. switched: one view at a time, not all side by side.
    wide: takes the page's whole width.
    """

    title: str
    caption: str
    views: tuple[View, ...]
    keys: tuple[Key, ...]
    switched: bool = False
    wide: bool = False


def shown(value: Value) -> str:
    """A value of the data as a table shows it."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _data_link(kind: str, text: str) -> str:
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
