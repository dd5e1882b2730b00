"""Tables, cell by cell."""

from collections.abc import Callable

from styleshift.experiments.recipe import recipe
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.experiments.table import Table, table_of
from styleshift.report.tables import page_table

MakeTable = Callable[..., Table]


def _half(record: Record) -> Record:
    return record.model_copy(update={"accuracy": 0.5})


def test_a_cell_stands_above_the_papers_and_says_how_many_seeds(altered: MakeTable) -> None:
    page = page_table(altered("pacs-original", _half))
    (row,) = (line for line in page.lines if line.label == "MixStyle")
    cell = dict(zip(page.heads, row.cells, strict=True))["Sketch"]
    assert (cell.ours, cell.paper, cell.missing) == ("50.0", "74.06", False)
    assert cell.detail == "Sketch: 50.00 % over n = 1; the paper 74.06 %"
    assert row.seeds == "0–1"


def test_what_was_not_run_says_so_and_keeps_the_papers_figure(smoke_table: Table) -> None:
    page = page_table(smoke_table)
    assert page.lines[0].why == "quoted by the paper"
    assert (page.lines[0].cells[0].ours, page.lines[0].cells[0].missing) == ("not run", True)


def test_its_data_has_a_row_for_every_cell(smoke_table: Table) -> None:
    page = page_table(smoke_table)
    assert len(page.rows) == len(page.lines) * len(page.heads)
    assert page.heads == ("Art", "Cartoon", "Photo", "Sketch", "Average")


def test_parts_of_a_table_are_named_above_their_columns() -> None:
    page = page_table(table_of(recipe("pacs-imbalanced"), scale("cpu"), []))
    assert page.groups == (("data-imbalance", 5), ("class-imbalance", 5))
    assert page.heads[:5] == ("Art", "Cartoon", "Photo", "Sketch", "Average")


def test_a_figures_table_shows_averages_alone() -> None:
    page = page_table(table_of(recipe("pacs-removal-share"), scale("cpu"), []))
    assert page.groups == tuple((share, 1) for share in ("0%", "20%", "40%", "60%", "80%"))
    assert set(page.heads) == {"Average"}
