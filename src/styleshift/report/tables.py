"""A recipe's table as the page shows it: every figure with its deviation and its count, and the paper's below it."""

from dataclasses import dataclass

from styleshift.experiments.table import AVERAGE, Stat, Table, TableRow, average_name
from styleshift.experiments.table_formats import NOT_RUN
from styleshift.report.figure import Data


@dataclass(frozen=True)
class Cell:
    """ours: as written, with its deviation. paper: empty where it prints none. detail: for whoever points at it."""

    ours: str
    paper: str
    detail: str
    missing: bool


@dataclass(frozen=True)
class PageRow:
    """cells: in the columns' order. seeds: how many stand behind them. why: there is nothing to run; else empty."""

    label: str
    why: str
    cells: tuple[Cell, ...]
    seeds: str


@dataclass(frozen=True)
class PageTable(Data):
    """groups: of columns that follow each other, and how many they are; empty in a table of one part.

    heads: of the columns. lines: of the table, where `rows` are its data.
    """

    recipe: str
    title: str
    about: str
    groups: tuple[tuple[str, int], ...]
    heads: tuple[str, ...]
    lines: tuple[PageRow, ...]
    notes: tuple[str, ...]


def page_table(table: Table) -> PageTable:
    """`table`, cell by cell."""
    names = columns_of(table)
    recipe = table.recipe
    heads = [name.rpartition("/") for name in names]
    groups: list[tuple[str, int]] = []
    for group, _, _ in heads:
        same = groups and groups[-1][0] == group
        groups[-1:] = [(group, groups[-1][1] + 1)] if same else [*groups[-1:], (group, 1)]
    lines = tuple(
        PageRow(row.label, row.not_run or "", tuple(_cell(stat_of(row, name), name) for name in names), _seeds(row))
        for row in table.rows
    )
    data = tuple(
        (row.label, row.method, row.shift, name, stat.mean, stat.sd, stat.n, stat.paper)
        for row in table.rows
        for name in names
        for stat in (stat_of(row, name),)
    )
    return PageTable(
        name=f"table-{table.scale.name}-{recipe.name}",
        recipe=recipe.name,
        title=recipe.title,
        about=recipe.about,
        groups=tuple(groups) if any(name for name, _ in groups) else (),
        heads=tuple(name for _, _, name in heads),
        lines=lines,
        notes=table.notes,
        columns=("row", "method", "shift", "column", "mean", "sd", "n", "paper"),
        rows=data,
    )


def columns_of(table: Table) -> list[str]:
    """The columns that are shown, averages among them, as `GROUP/NAME` where there are groups."""
    recipe = table.recipe
    names: list[str] = []
    for group in recipe.groups:
        members = [column.name for column in recipe.columns if column.group == group]
        if recipe.show == "columns":
            names += members
        # an average over one column is that column
        if recipe.show == "averages" or len(members) > 1:
            names.append(average_name(group))
    return names


def stat_of(row: TableRow, name: str) -> Stat:
    """The figure of a row in a column, or its average."""
    group, _, last = name.rpartition("/")
    return row.averages[group] if last == AVERAGE else row.cells[name]


def _seeds(row: TableRow) -> str:
    counts = sorted({stat.n for stat in row.cells.values()})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def _cell(stat: Stat, name: str) -> Cell:
    paper = "" if stat.paper is None else f"{stat.paper:.2f}"
    if stat.mean is None:
        return Cell(NOT_RUN, paper, f"{name}: {NOT_RUN}", missing=True)
    deviation = "" if stat.sd is None else f" ± {stat.sd:.1f}"
    said = f"{name}: {stat.mean:.2f}{'' if stat.sd is None else f' ± {stat.sd:.2f}'} % over n = {stat.n}"
    beside = f"; the paper {paper} %" if paper else ""
    return Cell(f"{stat.mean:.1f}{deviation}", paper, said + beside, missing=False)
