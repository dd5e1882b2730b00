"""What records say, as figures: the shift's effect, accuracy against removal share, time.

Every figure is over the seeds that there are; whiskers are deviations over seeds (n - 1), none where n = 1.
"""

import statistics

from styleshift.experiments.planning import Shift
from styleshift.experiments.table import Stat, Table, TableRow, seeds_of
from styleshift.report.charts import Bar, Change, Line, Panel, Point, bars, dumbbells, line_chart
from styleshift.report.drawing import Axis, colour, shape
from styleshift.report.figure import Figure, Key, View
from styleshift.report.sweeps import columns_with, said
from styleshift.training.variants import ShiftRow


def shift_effect(table: Table) -> Figure | None:
    """Before and after the recipe's shift, for every method and column that was tested with it."""
    asked = table.recipe
    changes = {method: _changes(table, method) for method in dict.fromkeys(record.method for record in table.records)}
    groups = [(method, each) for method, each in changes.items() if each]
    data = [
        (method, each.name, each.before, each.after, each.after - each.before) for method, c in groups for each in c
    ]
    if not data:
        return None
    better, worse = (sum(sign * row[4] > 0 for row in data) for sign in (1, -1))
    mean = statistics.fmean(row[4] for row in data)
    axis = Axis.over([value for row in data for value in row[2:4]], least=0, most=100)
    about = f"{asked.title}: accuracy before and after the shift, by method and target."
    return Figure(
        name=f"effect-{table.scale.name}-{asked.name}",
        title="What the shift changes",
        caption=f"From the ring (the model as it is) to the dot (with test-time style shifting, alpha {asked.alpha:g} "
        f"after {asked.shift_at}). Better in {better} of {len(data)} places, worse in {worse}; {mean:+.1f} points in "
        "the mean.",
        views=(View("", dumbbells(groups, axis, "accuracy, %", about)),),
        keys=(),
        columns=("method", "column", "before", "after", "difference"),
        rows=tuple(data),
    )


def accuracy_by_removal(table: Table) -> Figure | None:
    """Average accuracy of every row against the share of images removed (the paper's Figure 3)."""
    shares = {group: float(group[:-1]) for group in table.recipe.groups if group.endswith("%")}
    known = [row for row in table.rows if any(row.averages[group].mean is not None for group in shares)]
    if len(shares) < 2 or not known:
        return None
    lines = [_removal_line(row, shares, number) for number, row in enumerate(known)]
    axis = Axis(min(shares.values()) - 4, max(shares.values()) + 4, tuple((x, group) for group, x in shares.items()))
    y = Axis.over([point.y for each in lines for point in each.points], least=0, most=100)
    about = f"{table.recipe.title}: average accuracy of {len(known)} rows."
    return Figure(
        name=f"removal-{table.scale.name}-{table.recipe.name}",
        title=table.recipe.title,
        caption="The paper's Figure 3: average accuracy over the targets, the fewer images the smaller sources keep. "
        "Dashed: without the shift.",
        views=(View("", line_chart([Panel("accuracy, %", lines, y, 250)], axis, "removed", about)),),
        keys=tuple(Key(each.series, each.series, each.colour, each.shape, each.dashed) for each in lines),
        columns=("series", "removed", "accuracy", "sd", "n", "paper"),
        rows=tuple(
            (row.label, x, stat.mean, stat.sd, stat.n, stat.paper)
            for row in known
            for group, x in shares.items()
            for stat in (row.averages[group],)
        ),
    )


def time_taken(table: Table) -> Figure | None:
    """Seconds of a run in training and in all its tests, by method."""
    data = []
    for method in dict.fromkeys(record.method for record in table.records):
        timings = [record.timing for record in table.records if record.method == method]
        training = statistics.fmean(timing.training for timing in timings)
        testing = statistics.fmean(timing.evaluation for timing in timings)
        speed = statistics.fmean(timing.images_per_second for timing in timings)
        data.append((method, training, testing, speed, len(timings)))
    rows = [
        Bar(
            method,
            [(training, "c0"), (testing, "c1")],
            f"{method}: {training:.0f} s training at {speed:.0f} images/s, {testing:.0f} s testing, mean of {count}",
        )
        for method, training, testing, speed, count in data
    ]
    axis = Axis.over([0, *(training + testing for _, training, testing, _, _ in data)], least=0)
    return Figure(
        name=f"time-{table.scale.name}-{table.recipe.name}",
        title="Time of a run",
        caption="Wall clock, mean over runs. Testing covers every way of shifting that the tables show, from shared "
        "passes.",
        views=(View("", bars(rows, axis, "seconds", f"{table.recipe.title}: seconds of a run, by method.")),),
        keys=(Key("", "training", "c0", "square"), Key("", "testing", "c1", "square")),
        columns=("method", "training_seconds", "testing_seconds", "images_per_second", "runs"),
        rows=tuple(data),
    )


def _changes(table: Table, method: str) -> list[Change]:
    asked = table.recipe
    name = Shift(ShiftRow("", asked.shift_at, asked.alpha), asked.clusters).name
    changes = []
    for column, records in columns_with(table, method).items():
        after = {record.seed: share for record in records if (share := record.accuracy_of(name)) is not None}
        before = {record.seed: record.accuracy for record in records if record.seed in after}
        if after:
            changes.append(_change(column, seeds_of(before, None), seeds_of(after, None)))
    return changes


def _change(column: str, before: Stat, after: Stat) -> Change:
    assert before.mean is not None
    assert after.mean is not None
    tip = f"{column}: {said(before)} → {said(after)} %, {after.mean - before.mean:+.1f} points (n = {after.n})"
    return Change(column, before.mean, after.mean, tip)


def _removal_line(row: TableRow, shares: dict[str, float], number: int) -> Line:
    points = [
        Point(x, stat.mean, f"{row.label}, {group} removed: {said(stat)} % (n = {stat.n})", stat.sd)
        for group, x in shares.items()
        for stat in (row.averages[group],)
        if stat.mean is not None
    ]
    return Line(row.label, points, colour(number), shape(number), dashed=row.shift == "none")
