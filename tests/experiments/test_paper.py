"""The paper's own figures."""

import statistics

import pytest

from styleshift.experiments.paper import PaperTable, paper_table, paper_tables

TABLES = [table for table in paper_tables().values() if "Average" in table.columns and len(table.columns) > 2]


def test_it_reads_a_figure_by_method_and_column() -> None:
    assert paper_table("pacs-original").value("TSB (+ MixStyle)", "Sketch") == 78.66


def test_it_says_none_for_what_is_not_printed() -> None:
    table = paper_table("pacs-original")
    assert table.value("TSB (+ MixStyle)", "Sky") is None
    assert table.value("Nothing", "Sketch") is None


def test_it_names_near_tables_for_an_unknown_one() -> None:
    with pytest.raises(KeyError, match="pacs-original"):
        paper_table("pacs-originl")


def test_it_has_one_value_for_every_row_and_column() -> None:
    for table in paper_tables().values():
        assert all(len(row.values) == len(table.columns) for row in table.rows), table.name


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_it_names_every_average_that_does_not_add_up(table: PaperTable) -> None:
    domains = [column for column in table.columns if column not in ("Average", "Inference time (ms)")]
    known = {(misprint.method, misprint.column) for misprint in table.misprints}
    for row in table.rows:
        mean = statistics.fmean(table.value(row.method, domain) or 0 for domain in domains)
        printed = table.value(row.method, "Average")
        assert printed is not None
        # tables of one decimal are rounded to it
        assert abs(printed - mean) < 0.051 or (row.method, "Average") in known, row.method


def test_it_says_what_a_misprint_is() -> None:
    (misprint,) = paper_table("pacs-long-tailed").misprints
    assert str(misprint).startswith("TS (+ MixStyle), Average: the paper prints 77.53, but the row averages 76.41")
