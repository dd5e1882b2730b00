"""A recipe's table: mean and deviation over seeds, how many there are, and the paper's figure beside them.

    table_of    from records to rows of cells
    Stat        mean, sd (n - 1; none for n = 1) and n

Reading: an average is over the seeds that every one of its columns has, its mean, sd and n alike; where they share none
there is no average. Each seed counts with the mean of its columns. The paper's average stands beside it only where all
its columns are there.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from styleshift.experiments.paper import PaperTable, paper_tables
from styleshift.experiments.planning import run_of, shift_of
from styleshift.experiments.recipe import Recipe, Row
from styleshift.experiments.record import Record
from styleshift.experiments.scales import Scale

AVERAGE = "Average"
TIME = "Inference time (ms)"


@dataclass(frozen=True)
class Stat:
    """In percent; of times in milliseconds.

    mean: None where nothing was run. sd: over seeds, divided by n - 1; None where n is under 2.
    paper: the paper's figure, None where it prints none.
    """

    mean: float | None
    sd: float | None
    n: int
    paper: float | None


@dataclass(frozen=True)
class TableRow:
    """cells: by column. averages: by group of columns; the group is "" in a table of one part. not_run: why, if so.

    time: of inference, where the recipe asks for it. oracle: whether target labels chose anything.
    """

    label: str
    method: str
    shift: str
    cells: dict[str, Stat]
    averages: dict[str, Stat]
    not_run: str | None
    time: Stat | None = None
    oracle: bool = False


@dataclass(frozen=True)
class Table:
    """notes: what a reader must know, one line each. records: all that its figures come from."""

    recipe: Recipe
    scale: Scale
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    records: tuple[Record, ...]


def table_of(recipe: Recipe, scale: Scale, records: Iterable[Record]) -> Table:
    """What `records` know of `recipe` at `scale`: every seed, but of one set of images and first weights only."""
    paper = paper_tables().get(recipe.paper)
    places = _places(recipe, scale, list(records))
    found = {record.key: record for place in places.values() for record in place}
    kinds = Counter(map(_kind, found.values()))
    kind = kinds.most_common(1)[0][0] if kinds else None
    used = tuple(record for record in found.values() if _kind(record) == kind)
    shares = {place: _shares(recipe, place, [r for r in here if _kind(r) == kind]) for place, here in places.items()}
    rows = tuple(replace(_row(recipe, row, shares, paper), time=_time(recipe, row, used, paper)) for row in recipe.rows)
    return Table(recipe, scale, rows, tuple(_notes(recipe, scale, rows, used, len(found) - len(used), paper)), used)


def seeds_of(shares: Mapping[int, float], paper: float | None) -> Stat:
    """Statistics of one number a seed. shares: between 0 and 1."""
    percents = [100 * share for share in shares.values()]
    return Stat(
        mean=statistics.fmean(percents) if percents else None,
        sd=statistics.stdev(percents) if len(percents) > 1 else None,
        n=len(percents),
        paper=paper,
    )


def average_of(columns: Sequence[Mapping[int, float]], paper: float | None) -> Stat:
    """Over the seeds that all columns have: each maps a seed to a share."""
    common = sorted(set.intersection(*(set(column) for column in columns)))
    return seeds_of({seed: statistics.fmean(column[seed] for column in columns) for seed in common}, paper)


_Place = tuple[int, int]  # row and column, counted from 0


def _places(recipe: Recipe, scale: Scale, records: Sequence[Record]) -> dict[_Place, list[Record]]:
    """The records that belong into each place, by the hash of the settings that the recipe asks for there."""
    by_cell: dict[str, list[Record]] = {}
    for record in records:
        by_cell.setdefault(record.cell, []).append(record)
    seeds = sorted({record.seed for record in records})
    return {
        (line, place): [
            record for seed in seeds for record in by_cell.get(run_of(recipe, scale, row, column, seed).cell, [])
        ]
        for line, row in enumerate(recipe.rows)
        for place, column in enumerate(recipe.columns)
        if row.not_run is None
    }


def _kind(record: Record) -> tuple[str, str | None]:
    return record.data, record.weights


def _shares(recipe: Recipe, place: _Place, records: Iterable[Record]) -> dict[int, float]:
    """Accuracy by seed, tested in the row's way."""
    name = shift_of(recipe, recipe.rows[place[0]]).name
    found = {record.seed: record.accuracy_of(name) for record in records}
    return {seed: share for seed, share in found.items() if share is not None}


def _row(recipe: Recipe, row: Row, shares: Mapping[_Place, Mapping[int, float]], paper: PaperTable | None) -> TableRow:
    line = recipe.rows.index(row)
    columns = {column.name: shares.get((line, place), {}) for place, column in enumerate(recipe.columns)}

    def printed(name: str) -> float | None:
        return paper.value(row.paper, name) if paper and row.paper else None

    groups = {
        group: [columns[column.name] for column in recipe.columns if column.group == group] for group in recipe.groups
    }
    return TableRow(
        label=row.label,
        method=row.method,
        shift=row.shift,
        cells={name: seeds_of(column, printed(name)) for name, column in columns.items()},
        averages={
            group: average_of(members, printed(average_name(group)) if _is_whole(recipe, group, paper) else None)
            for group, members in groups.items()
        },
        not_run=row.not_run,
        oracle=row.oracle,
    )


def _is_whole(recipe: Recipe, group: str, paper: PaperTable | None) -> bool:
    """Whether the paper's average is over the columns that there are here."""
    if paper is None or average_name(group) not in paper.columns:
        return False
    before = paper.columns[: paper.columns.index(average_name(group))]
    members = {name for name in before if name.rpartition("/")[0] == group}
    return members <= {column.name for column in recipe.columns}


def _time(recipe: Recipe, row: Row, records: Sequence[Record], paper: PaperTable | None) -> Stat | None:
    """Milliseconds an image: of each seed the mean over the columns that were measured."""
    if not recipe.timed:
        return None
    by_seed: dict[int, list[float]] = {}
    for record in records:
        if record.method == row.method and (found := record.costs.get(shift_of(recipe, row).name)) is not None:
            by_seed.setdefault(record.seed, []).append(found)
    means = [statistics.fmean(found) for found in by_seed.values()]
    return Stat(
        mean=statistics.fmean(means) if means else None,
        sd=statistics.stdev(means) if len(means) > 1 else None,
        n=len(means),
        paper=paper.value(row.paper, TIME) if paper and row.paper else None,
    )


def average_name(group: str) -> str:
    """The average's column, as the paper prints it."""
    return f"{group}/{AVERAGE}" if group else AVERAGE


def _notes(
    recipe: Recipe,
    scale: Scale,
    rows: Iterable[TableRow],
    used: Sequence[Record],
    strangers: int,
    paper: PaperTable | None,
) -> Iterator[str]:
    yield f"scale {scale.name}: {scale.about}"
    if scale.generated:
        yield "generated images in place of the dataset"
    counts = sorted({stat.n for row in rows for stat in row.cells.values() if stat.n})
    if 1 in counts:
        yield "n = 1: one seed, so no deviation"
    if any(row.oracle for row in recipe.rows) or any(record.oracle for record in used):
        yield "oracle: chosen with target labels"
    if shares := _shifted(recipe, used):
        listed = ", ".join(f"{name} {share:.0%}".replace("%", " %") for name, share in shares.items())
        yield f"shifted by TS: {listed}; all others are near by their score, and stay as they are"
    if strangers:
        yield f"{strangers} results from other images or first weights are left out: they do not belong into one table"
    if dirty := sum((record.commit or "").endswith("-dirty") for record in used):
        yield f"{dirty} of {len(used)} results come from a source tree with uncommitted changes"
    for misprint in paper.misprints if paper else ():
        if any(row.paper == misprint.method for row in recipe.rows):
            yield str(misprint)


def _shifted(recipe: Recipe, records: Iterable[Record]) -> dict[str, float]:
    """Mean share of test images shifted, by column; empty where the rows do not have one shift in common."""
    shifts = {shift_of(recipe, row).name for row in recipe.rows if row.not_run is None and row.shift != "none"}
    if len(shifts) != 1:
        return {}
    (shift,) = shifts
    shares: dict[str, list[float]] = {}
    for record in records:
        for column in recipe.columns:
            here = (column.domain, column.scenario or recipe.scenario)
            if here == (record.domain, record.facts["scenario"]) and shift in record.shifts:
                shares.setdefault(column.name, []).append(record.shifts[shift].shifted)
    return {column.name: statistics.fmean(shares[column.name]) for column in recipe.columns if column.name in shares}
