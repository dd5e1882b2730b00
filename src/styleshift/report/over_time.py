"""Streams, as figures: accuracy over time of test-time methods, from the files of `python -m benchmarks.streams`.

    found_in      the files in some folders
    Streamed      what one of them says of one model
    over_time     its figure: a view an order, a line a method
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styleshift.report.charts import Line, Panel, Point, line_chart
from styleshift.report.drawing import Axis, colour, shape
from styleshift.report.figure import Figure, Key, View
from styleshift.training.streams import Moment, Played

_SIZE = 2.2  # of a mark: there are fifty on a line


@dataclass(frozen=True)
class Streamed:
    """model, key: the model's name and its record's. made: the batch size, the seed and the precision, in words."""

    model: str
    key: str
    made: str
    played: tuple[Played, ...]

    @classmethod
    def of_text(cls, text: str, where: object) -> "Streamed":
        """From what such a file holds. ValueError if it holds something else."""
        try:
            said: dict[str, Any] = json.loads(text)
            made = ", ".join(f"{name} {said[name]}" for name in ("batch", "seed", "precision"))
            played = tuple(Played.of(each) for each in said["played"])
            return cls(str(said["model"]), str(said["key"]), made, played)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{where} is not what `python -m benchmarks.streams` writes ({type(error).__name__}: {error}). "
                "Write it again, or remove it"
            ) from None


def found_in(folders: Iterable[Path]) -> list[Streamed]:
    """What all files streams-*.json in these folders and below them say; equal ones once."""
    texts: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("streams-*.json")):
            texts.setdefault(path.read_text(encoding="utf-8"), path)
    return [Streamed.of_text(text, path) for text, path in texts.items()]


def over_time(streamed: Streamed, name: str) -> Figure:
    """Accuracy since the point before against samples seen. name: of the figure."""
    methods = list(dict.fromkeys(each.name for each in streamed.played))
    orders = dict.fromkeys(each.order for each in streamed.played)
    return Figure(
        name=name,
        title=streamed.model,
        caption=f"Accuracy on the samples since the point before, in percent: {streamed.made}. Every method begins "
        "each order afresh; an episodic one begins afresh at every batch.",
        views=tuple(View(order, _drawing(streamed, order, methods)) for order in orders),
        keys=tuple(Key(each, each, colour(number), shape(number)) for number, each in enumerate(methods)),
        columns=("order", "method", "seen", "accuracy", "accuracy so far", "said most"),
        rows=tuple(
            (each.order, each.name, moment.seen, *(100 * share for share in _shares(moment)))
            for each in streamed.played
            for moment in each.over_time
        ),
        switched=True,
    )


def _drawing(streamed: Streamed, order: str, methods: list[str]) -> str:
    here = [each for each in streamed.played if each.order == order]
    lines = [_line(each, methods.index(each.name)) for each in here]
    seen = Axis.over([0, *(moment.seen for each in here for moment in each.over_time)], least=0)
    y = Axis.over([point.y for each in lines for point in each.points], least=0, most=100)
    about = f"{streamed.model}, order {order}: accuracy of {len(lines)} methods over the samples seen."
    return line_chart([Panel("accuracy, %", lines, y, 250)], seen, "samples seen", about)


def _line(played: Played, number: int) -> Line:
    points = [_point(played.name, moment) for moment in played.over_time]
    return Line(played.name, points, colour(number), shape(number))


def _point(name: str, moment: Moment) -> Point:
    percent = 100 * moment.recent
    return Point(moment.seen, percent, f"{name}, {moment.seen} seen: {percent:.1f} %", size=_SIZE)


def _shares(moment: Moment) -> tuple[float, float, float]:
    return moment.recent, moment.accuracy, moment.said_most
