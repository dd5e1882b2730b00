"""One method tested in many ways."""

from collections.abc import Callable

import pytest

from styleshift.experiments.planning import run_of
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.experiments.table import Table, table_of
from styleshift.report.figure import Figure
from styleshift.report.sweeps import (
    Sweep,
    accuracy_by_alpha,
    accuracy_by_location,
    columns_with,
    method_shown,
)

MakeTable = Callable[..., Table]


def some(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def all_columns(table: Table) -> Table:
    """The table with a record in every column: copies of one, where nothing was run."""
    asked, here = table.recipe, scale("smoke")
    pattern = table.records[0]
    records = [
        pattern.model_copy(update={"domain": column.domain, "cell": run.cell, "method": row.method, "key": run.cell})
        for row in asked.rows
        if row.not_run is None
        for column in asked.columns
        for run in (run_of(asked, here, row, column, 0),)
    ]
    return table_of(asked, here, records)


def test_alpha_runs_from_shifting_all_to_shifting_nothing(smoke_table: Table) -> None:
    rows = some(accuracy_by_alpha(smoke_table)).rows
    sketch = [row for row in rows if row[0] == "Sketch"]
    assert [row[1] for row in sketch] == [0, 1, 2, 3, 4, 5, "∞"]
    assert (sketch[0][5], sketch[-1][5]) == (100.0, 0.0)
    shares = [float(str(row[5])) for row in sketch]
    assert shares == sorted(shares, reverse=True)


def test_the_end_of_the_curve_is_the_model_as_it_is(smoke_table: Table) -> None:
    (record,) = (r for r in smoke_table.records if (r.method, r.domain) == ("mixstyle+sb", "sketch"))
    rows = some(accuracy_by_alpha(smoke_table)).rows
    assert [row[2] for row in rows if row[:2] == ("Sketch", "∞")] == [pytest.approx(100 * record.accuracy)]


def test_location_shows_the_blocks_that_the_network_has(smoke_table: Table) -> None:
    rows = some(accuracy_by_location(smoke_table)).rows
    assert [row[1] for row in rows if row[0] == "Sketch"] == ["no shift", 1, 2, 3]


def test_an_average_stands_beside_the_papers_only_over_all_columns(smoke_table: Table) -> None:
    names = [key.name for key in some(accuracy_by_alpha(smoke_table)).keys]
    assert names == ["Cartoon", "Sketch"]
    rows = some(accuracy_by_alpha(all_columns(smoke_table))).rows
    assert {row[0] for row in rows} == {"Art", "Cartoon", "Photo", "Sketch", "Average", "the paper's average"}
    # Table 1's TSB (+ MixStyle), and SB (+ MixStyle) as it is
    assert [row[2] for row in rows if row[:2] == ("the paper's average", 3)] == [84.63]
    assert [row[2] for row in rows if row[:2] == ("the paper's average", "∞")] == [83.11]


def test_the_papers_own_method_is_shown_where_it_was_run(smoke_table: Table) -> None:
    assert method_shown(smoke_table) == "mixstyle+sb"


def test_another_method_is_shown_where_it_was_not(altered: MakeTable) -> None:
    def other(record: Record) -> Record:
        return record.model_copy(update={"method": "dsu"})

    assert method_shown(altered("pacs-original", other)) == "dsu"


def test_without_tests_of_the_shift_there_is_no_curve(altered: MakeTable) -> None:
    table = altered("pacs-original", lambda record: record.model_copy(update={"shifts": {}}))
    assert accuracy_by_alpha(table) is None
    assert accuracy_by_location(table) is None


def test_columns_hold_the_methods_records_alone(smoke_table: Table) -> None:
    found = columns_with(smoke_table, "mixstyle")
    assert {name: [record.method for record in records] for name, records in found.items()} == {
        "Cartoon": ["mixstyle"],
        "Sketch": ["mixstyle"],
    }


def test_an_untested_place_is_left_out(smoke_table: Table) -> None:
    sweep = Sweep.of(smoke_table, {0: "none", 1: "ts:at=layer9"})
    assert dict(sweep.places) == {0: "none"}
