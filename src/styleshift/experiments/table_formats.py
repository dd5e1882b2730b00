"""A table as text, Markdown, LaTeX or JSON."""

import json
from collections.abc import Callable, Mapping
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table as TextTable

from styleshift.experiments.table import AVERAGE, TIME, Stat, Table, TableRow, average_name

NOT_RUN = "not run"
_PM = " $\\pm$ "


def as_json(table: Table) -> str:
    """`{recipe, scale, rows: [{method, shift, cells: {COLUMN: {mean, sd, n, paper}}, average: {mean, sd, n, paper}}]}`.

    In a table of several parts each part's average is the cell GROUP/Average, and `average` is empty. Also in a row:
    `oracle`, whether target labels chose anything, and `not_run`, why, if so; and beside the rows `notes`.
    """
    rows = [
        {
            "method": row.method,
            "shift": row.shift,
            "cells": {name: vars(stat) for name, stat in _all_cells(row).items() if name != AVERAGE},
            "average": vars(row.averages.get("", Stat(None, None, 0, None))),
            "oracle": row.oracle,
            "not_run": row.not_run,
        }
        for row in table.rows
    ]
    answer = {"recipe": table.recipe.name, "scale": table.scale.name, "rows": rows, "notes": table.notes}
    return json.dumps(answer, indent=1, ensure_ascii=False)


def as_text(table: Table, width: int | None = None) -> str:
    """For a terminal. width: in characters; None takes the terminal's."""
    written = StringIO()
    console = Console(file=written, width=width, highlight=False)
    grid = TextTable(title=_title(table), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("")
    for name in [*_columns(table), "n"]:
        grid.add_column(name.replace("/", "\n"), justify="right")
    for row in table.rows:
        cells = [_two_lines(_all_cells(row)[name]) for name in _columns(table)]
        grid.add_row(_label(row), *cells, _count(row))
    console.print(grid)
    if _has_paper(table):
        console.print("Below each figure, the paper's.")
    for note in table.notes:
        console.print(f"- {note}", soft_wrap=True, markup=False)
    return written.getvalue()


def as_markdown(table: Table) -> str:
    """A pipe table; beside each figure, in brackets, the paper's."""
    header = ["", *_columns(table), "n"]
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *(_line(table, row, " ± ") for row in table.rows)]
    body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    notes = "\n".join(f"- {note}" for note in table.notes)
    brackets = "In brackets, the paper's figure.\n\n" if _has_paper(table) else ""
    return f"**{_title(table)}**\n\n{body}\n\n{brackets}{notes}\n"


def as_latex(table: Table) -> str:
    """A tabular with booktabs rules; beside each figure, in brackets, the paper's."""
    columns = _columns(table)
    head = " & ".join(["Method", *map(_escaped, columns), "$n$"])
    lines = [" & ".join([_escaped(label), *cells]) for label, *cells in (_line(table, row, _PM) for row in table.rows)]
    notes = "\n".join(f"% {note}" for note in (_title(table), *table.notes))
    body = " \\\\\n".join(lines)
    return (
        f"{notes}\n\\begin{{tabular}}{{l{'r' * (len(columns) + 1)}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body} \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
    )


FORMATS: Mapping[str, Callable[[Table], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "json": as_json,
}


def _columns(table: Table) -> list[str]:
    recipe = table.recipe
    names = []
    for group in recipe.groups:
        if recipe.show == "columns":
            names += [column.name for column in recipe.columns if column.group == group]
        names.append(average_name(group))
    # an average over one column is that column
    kept = names[:-1] if len(recipe.columns) == 1 and recipe.show == "columns" else names
    return [*kept, TIME] if recipe.timed else kept


def _all_cells(row: TableRow) -> dict[str, Stat]:
    averages = {average_name(group): stat for group, stat in row.averages.items()}
    return {**row.cells, **averages, **({TIME: row.time} if row.time else {})}


def _has_paper(table: Table) -> bool:
    return any(stat.paper is not None for row in table.rows for stat in _all_cells(row).values())


def _title(table: Table) -> str:
    return f"{table.recipe.name}: {table.recipe.title} (scale {table.scale.name})"


def _label(row: TableRow) -> str:
    return f"{row.label} ({row.not_run})" if row.not_run else row.label


def _count(row: TableRow) -> str:
    """How many seeds stand behind the row's figures."""
    counts = sorted({stat.n for stat in row.cells.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def _ours(stat: Stat, plus_minus: str) -> str:
    if stat.mean is None:
        return NOT_RUN
    return f"{stat.mean:.1f}" if stat.sd is None else f"{stat.mean:.1f}{plus_minus}{stat.sd:.1f}"


def _line(table: Table, row: TableRow, plus_minus: str) -> list[str]:
    cells = _all_cells(row)
    return [_label(row), *(_one_line(cells[name], plus_minus) for name in _columns(table)), _count(row)]


def _one_line(stat: Stat, plus_minus: str) -> str:
    ours = _ours(stat, plus_minus)
    return ours if stat.paper is None else f"{ours} ({stat.paper:.2f})"


def _two_lines(stat: Stat) -> str:
    paper = "" if stat.paper is None else f"\n[dim]{stat.paper:.2f}[/dim]"
    return _ours(stat, " ± ") + paper


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "&%$#_{}" else letter for letter in text)
