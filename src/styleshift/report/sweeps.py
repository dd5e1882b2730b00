"""One method tested in many ways, as figures: accuracy against alpha, and against where the shift sits.

All that is swept over is in the records of the same runs: a training is tested in all ways at once.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from styleshift.experiments.paper import paper_tables
from styleshift.experiments.planning import ALPHA, Shift, run_of, shift_of
from styleshift.experiments.recipe import Recipe, recipe, recipe_names
from styleshift.experiments.record import Record
from styleshift.experiments.running import LAYERS
from styleshift.experiments.table import AVERAGE, Stat, Table, average_name, average_of, seeds_of
from styleshift.report.charts import Line, Panel, Point, line_chart
from styleshift.report.drawing import Axis, colour, shape
from styleshift.report.figure import Figure, Key, Rows, View
from styleshift.training.variants import ShiftRow

PREFERRED = ("mixstyle+sb", "mixstyle", "baseline")  # whose figures are shown, where there are several: the paper's
_ALPHAS = range(6)
_NEVER = 6  # where the model as it is stands on alpha's axis: with alpha beyond all scores nothing is shifted
_PAPER = "the paper's average"


def accuracy_by_alpha(table: Table) -> Figure | None:
    """Accuracy, and the share of test images shifted, against alpha."""
    layer, clusters = table.recipe.shift_at, table.recipe.clusters
    names = {alpha: Shift(ShiftRow("", layer, float(alpha)), clusters).name for alpha in _ALPHAS}
    sweep = Sweep.of(table, {**names, _NEVER: "none"})
    if len(sweep.places) < _LEAST:
        return None
    axis = Axis(-0.3, _NEVER + 0.3, tuple((alpha, "∞" if alpha == _NEVER else f"{alpha}") for alpha in sweep.places))
    shares = Axis(0, 100, ((0, "0"), (50, "50"), (100, "100")))
    panels = [
        Panel("accuracy, %", sweep.lines("alpha"), sweep.axis),
        Panel("shifted, %", list(sweep.shares_shifted()), shares, height=84),
    ]
    about = f"{table.recipe.title}, {sweep.method}: accuracy and share of images shifted against alpha."
    return Figure(
        name=f"alpha-{table.scale.name}-{table.recipe.name}",
        title="Accuracy against alpha",
        caption=f"{sweep.method}, shifted after {layer}. A test image is shifted where its score is above alpha; at ∞ "
        "nothing is, which is the model as it is. Below: the share that is shifted.",
        views=(View("", line_chart(panels, axis, "alpha", about)),),
        keys=sweep.keys,
        columns=("series", "alpha", "accuracy", "sd", "n", "shifted"),
        rows=tuple((*row, sweep.shifted(str(row[0]), row[1])) for row in sweep.rows("∞")),
    )


def accuracy_by_location(table: Table) -> Figure | None:
    """Accuracy with the shift after each block, beside none."""
    clusters = table.recipe.clusters
    names = {place: Shift(ShiftRow("", layer, ALPHA), clusters).name for place, layer in enumerate(LAYERS, start=1)}
    sweep = Sweep.of(table, {0: "none", **names})
    if len(sweep.places) < _LEAST:
        return None
    axis = Axis.of_names(["no shift", *(LAYERS[place - 1] for place in sweep.places if place)])
    about = f"{table.recipe.title}, {sweep.method}: accuracy with the shift after each block."
    chart = line_chart([Panel("accuracy, %", sweep.lines("after block"), sweep.axis, 250)], axis, "", about)
    return Figure(
        name=f"location-{table.scale.name}-{table.recipe.name}",
        title="Where the shift sits",
        caption=f"{sweep.method}, alpha {ALPHA:g}. Early blocks hold style; after the last one features cluster by "
        "class, and rendering them in another style destroys what was recognised.",
        views=(View("", chart),),
        keys=sweep.keys,
        columns=("series", "after block", "accuracy", "sd", "n"),
        rows=sweep.rows("no shift", of_none=0),
    )


_LEAST = 3  # places that make a curve: the model as it is and two others


@dataclass(frozen=True)
class Sweep:
    """A method's records by column, tested with the shift of each place.

    places: where on the x axis each shift stands, those tested alone. printed: the paper's averages by shift.
    complete: whether every column of the table has records, so that there is an average to speak of.
    """

    method: str
    columns: Mapping[str, Sequence[Record]]
    places: Mapping[int, str]
    printed: Mapping[str, float]
    complete: bool

    @classmethod
    def of(cls, table: Table, places: Mapping[int, str]) -> "Sweep":
        """What `table` knows of its most telling method at these places."""
        method = method_shown(table)
        columns = columns_with(table, method)
        records = [record for each in columns.values() for record in each]
        tested = {x: name for x, name in places.items() if any(r.accuracy_of(name) is not None for r in records)}
        complete = len(columns) == len(table.recipe.columns) > 1
        return cls(method, columns, tested, _printed(table.recipe, method) if complete else {}, complete)

    @cached_property
    def series(self) -> dict[str, dict[int, Stat]]:
        """Statistics of every column, of their average and of the paper's, by place."""
        shares = {
            column: {
                x: {record.seed: share for record in records if (share := record.accuracy_of(name)) is not None}
                for x, name in self.places.items()
            }
            for column, records in self.columns.items()
        }
        found = {
            column: {x: seeds_of(by_seed, None) for x, by_seed in at.items() if by_seed}
            for column, at in shares.items()
        }
        if self.complete:
            found[AVERAGE] = {x: average_of([at[x] for at in shares.values()], None) for x in self.places}
        papers = {x: self.printed[name] for x, name in self.places.items() if name in self.printed}
        if papers:
            found[_PAPER] = {x: Stat(value, None, 0, None) for x, value in papers.items()}
        return found

    @property
    def axis(self) -> Axis:
        """Of accuracies."""
        means = [stat.mean for stats in self.series.values() for stat in stats.values() if stat.mean is not None]
        return Axis.over(means, least=0, most=100)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The legend."""
        return tuple(
            Key(name, name, _colour_of(name, number), shape(number), dashed=name == _PAPER)
            for number, name in enumerate(self.series)
        )

    def lines(self, what: str) -> list[Line]:
        """One for each series. what: the x axis is."""
        return [
            Line(
                name,
                [
                    Point(x, stat.mean, self._tip(name, what, x, stat), stat.sd)
                    for x, stat in stats.items()
                    if stat.mean is not None
                ],
                _colour_of(name, number),
                shape(number),
                dashed=name == _PAPER,
            )
            for number, (name, stats) in enumerate(self.series.items())
        ]

    def rows(self, never: str, of_none: int = _NEVER) -> Rows:
        """Series, place, accuracy, deviation, count. never: the word for the place `of_none` of the model as it is."""
        return tuple(
            (name, never if x == of_none else x, stat.mean, stat.sd, stat.n)
            for name, stats in self.series.items()
            for x, stat in stats.items()
            if stat.mean is not None
        )

    def shares_shifted(self) -> Iterator[Line]:
        """The share shifted, for each column."""
        for number, column in enumerate(self.columns):
            shares = {x: self.shifted(column, x) for x in self.places}
            points = [
                Point(x, share, f"{column}, alpha {_alpha(x)}: {share:.1f} % shifted", size=3.2)
                for x, share in shares.items()
                if share is not None
            ]
            yield Line(column, points, colour(number), shape(number))

    def shifted(self, column: str, x: object) -> float | None:
        """Percentage of test images shifted at a place; None for an average, and where it was not tested."""
        name = self.places[x] if isinstance(x, int) else "none"
        records = self.columns.get(column, ())
        if name == "none":
            return 0.0 if records else None
        shares = [record.shifts[name].shifted for record in records if name in record.shifts]
        return 100 * statistics.fmean(shares) if shares else None

    def _tip(self, name: str, what: str, x: int, stat: Stat) -> str:
        at = "no shift" if self.places[x] == "none" else f"{what} {x}"
        count = f" (n = {stat.n})" if stat.n else ""
        return f"{name}, {at}: {said(stat)} %{count}"


def said(stat: Stat) -> str:
    """Mean and deviation, as they are written."""
    return f"{stat.mean:.1f}" + ("" if stat.sd is None else f" ± {stat.sd:.1f}")


def method_shown(table: Table) -> str:
    """The one method whose runs the figures are about: the paper's own where it was run, else the most frequent."""
    methods = [record.method for record in table.records]
    return next((name for name in PREFERRED if name in methods), statistics.mode(methods))


def columns_with(table: Table, method: str) -> dict[str, list[Record]]:
    """The method's records by column, a seed after the other; columns without any are left out."""
    by_cell = {record.cell: record for record in table.records}
    row = next(row for row in table.recipe.rows if row.method == method and row.not_run is None)
    seeds = sorted({record.seed for record in table.records})
    found = {
        column.name: [
            by_cell[cell]
            for seed in seeds
            if (cell := run_of(table.recipe, table.scale, row, column, seed).cell) in by_cell
        ]
        for column in table.recipe.columns
    }
    return {name: records for name, records in found.items() if records}


def _alpha(x: int) -> str:
    return "∞" if x == _NEVER else f"{x}"


def _colour_of(series: str, number: int) -> str:
    return "ink" if series in (AVERAGE, _PAPER) else colour(number)


def _printed(like: Recipe, method: str) -> dict[str, float]:
    """The paper's average for every shift of `method` that any of its tables prints for these columns."""
    found: dict[str, float] = {}
    for other in map(recipe, recipe_names()):
        printed = paper_tables().get(other.paper)
        if printed is None or _kind(other) != _kind(like):
            continue
        for row in other.rows:
            value = printed.value(row.paper, average_name("")) if row.paper else None
            if row.method == method and value is not None:
                found.setdefault(shift_of(other, row).name, value)
    return found


def _kind(each: Recipe) -> tuple[object, ...]:
    """Equal for recipes whose averages are over the same trainings."""
    return each.dataset, each.scenario, each.protocol, each.backbone, [(c.domain, c.scenario) for c in each.columns]
