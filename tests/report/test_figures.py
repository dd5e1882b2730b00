"""Figures of records, with numbers that can be checked by hand."""

from collections.abc import Callable

import pytest

from styleshift.experiments.record import Record
from styleshift.experiments.table import Stat, Table, TableRow
from styleshift.report.figure import Figure
from styleshift.report.figures import accuracy_by_removal, shift_effect, time_taken

MakeTable = Callable[..., Table]


def right_so_often(after: dict[str, float]) -> Callable[[Record], Record]:
    """Every model is right for half as it is, and so often with the shift, by domain."""

    def change(record: Record) -> Record:
        shifts = dict(record.shifts)
        name = "ts:at=layer2"
        shifts[name] = shifts[name].model_copy(update={"accuracy": after[record.domain]})
        return record.model_copy(update={"accuracy": 0.5, "shifts": shifts})

    return change


def some(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def test_the_effect_says_where_the_shift_harms_as_well(altered: MakeTable) -> None:
    figure = some(shift_effect(altered("pacs-original", right_so_often({"sketch": 0.7, "cartoon": 0.4}))))
    assert ("mixstyle", "Sketch", 50.0, 70.0, pytest.approx(20.0)) in figure.rows
    assert ("mixstyle", "Cartoon", 50.0, 40.0, pytest.approx(-10.0)) in figure.rows
    assert "Better in 2 of 4 places, worse in 2; +5.0 points in the mean." in figure.caption


def test_records_without_the_shift_have_no_effect_to_show(altered: MakeTable) -> None:
    assert shift_effect(altered("pacs-original", lambda record: record.model_copy(update={"shifts": {}}))) is None


def test_time_is_the_mean_over_a_methods_runs(altered: MakeTable) -> None:
    def slow(record: Record) -> Record:
        timing = record.timing.model_copy(
            update={"training": 10.0 if record.domain == "sketch" else 30.0, "evaluation": 5, "images_per_second": 7}
        )
        return record.model_copy(update={"timing": timing})

    rows = {row[0]: row[1:] for row in some(time_taken(altered("pacs-original", slow))).rows}
    assert rows == {"mixstyle": (20, 5, 7, 2), "mixstyle+sb": (20, 5, 7, 2)}


def test_removal_needs_averages_of_two_shares(altered: MakeTable) -> None:
    table = altered("pacs-removal-share")
    assert accuracy_by_removal(table) is None
    assert accuracy_by_removal(altered("pacs-original")) is None


def test_removal_draws_a_line_for_every_row_that_was_run(altered: MakeTable) -> None:
    table = altered("pacs-removal-share")
    known = TableRow(
        **{**vars(table.rows[0]), "averages": {group: Stat(60.0, 1.0, 3, None) for group in table.recipe.groups}}
    )
    figure = some(accuracy_by_removal(Table(**{**vars(table), "rows": (known, *table.rows[1:])})))
    assert [key.name for key in figure.keys] == [known.label]
    assert figure.rows[1] == (known.label, 20.0, 60.0, 1.0, 3, None)
