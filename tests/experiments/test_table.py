"""Tables, with numbers that can be checked by hand."""

import math
from collections.abc import Callable

import pytest

from styleshift.experiments.planning import Run
from styleshift.experiments.recipe import Recipe, recipe
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.experiments.table import Stat, Table, average_of, seeds_of, table_of

MakeRecord = Callable[..., Record]
ART = {0: 0.70, 1: 0.72, 2: 0.74}
SKETCH = {0: 0.60, 1: 0.66, 2: 0.60}
CPU = scale("cpu")


@pytest.fixture
def full(small: Recipe, small_runs: list[Run], make_record: MakeRecord) -> Table:
    return table_of(small, CPU, records(small_runs, make_record))


def records(runs: list[Run], make_record: MakeRecord) -> list[Record]:
    shares = {"art_painting": ART, "sketch": SKETCH}
    return [make_record(run, shares[run.domain][run.seed], {"ts:at=layer2": 0.8}) for run in runs]


def near(stat: Stat, mean: float, sd: float | None, n: int) -> bool:
    alike = sd is None if stat.sd is None else sd is not None and math.isclose(stat.sd, sd)
    return stat.mean is not None and math.isclose(stat.mean, mean) and alike and stat.n == n


def test_a_cell_is_the_mean_over_seeds_in_percent(full: Table) -> None:
    # 70, 72, 74: squares 4 + 0 + 4, over n - 1 = 2: 4, so 2
    assert near(full.rows[0].cells["Art"], 72, 2, 3)


def test_the_deviation_is_divided_by_n_minus_1(full: Table) -> None:
    # 60, 66, 60: mean 62, squares 4 + 16 + 4 = 24, over 2: 12
    assert near(full.rows[0].cells["Sketch"], 62, math.sqrt(12), 3)


def test_the_paper_stands_beside_it(full: Table) -> None:
    assert full.rows[0].cells["Art"].paper == 82.54


def test_the_papers_average_stands_beside_one_over_the_same_columns(full: Table) -> None:
    assert table_of(recipe("pacs-original"), CPU, []).rows[6].averages[""].paper == 77.62
    # of its four columns two are here
    assert full.rows[0].averages[""].paper is None


def test_an_average_that_alone_is_printed_stands_beside_ours() -> None:
    assert table_of(recipe("pacs-class-imbalance-methods"), CPU, []).rows[0].averages[""].paper == 40.28


def test_an_average_is_the_mean_of_the_columns(full: Table) -> None:
    # averages of single seeds: 65, 69, 67; deviation 2
    assert near(full.rows[0].averages[""], 67, 2, 3)


def test_a_shift_is_a_row_of_the_same_runs(full: Table) -> None:
    assert near(full.rows[1].cells["Art"], 80, 0, 3)


def test_it_says_how_many_a_shift_moved(small: Recipe, small_runs: list[Run], make_record: MakeRecord) -> None:
    made = records(small_runs, make_record)
    half = made[0].shifts["ts:at=layer2"].model_copy(update={"shifted": 0.5})
    made[0] = made[0].model_copy(update={"shifts": {"ts:at=layer2": half}})
    # art 50, 100 and 100 %; sketch always 100 %
    assert any(note.startswith("shifted by TS: Art 83 %, Sketch 100 %;") for note in table_of(small, CPU, made).notes)


def test_it_does_not_where_there_are_several_shifts_or_no_result(small: Recipe) -> None:
    for asked in (recipe("pacs-alpha"), small):
        assert not any("shifted by TS" in note for note in table_of(asked, CPU, []).notes)


def test_one_seed_has_no_deviation_and_the_table_says_so(
    small: Recipe, small_runs: list[Run], make_record: MakeRecord
) -> None:
    single = table_of(small, CPU, records(small_runs[:2], make_record))
    assert near(single.rows[0].cells["Art"], 70, None, 1)
    assert near(single.rows[0].averages[""], 65, None, 1)
    assert "n = 1: one seed, so no deviation" in single.notes


def test_an_incomplete_row_has_no_average(small: Recipe, small_runs: list[Run], make_record: MakeRecord) -> None:
    art = [run for run in small_runs if run.domain == "art_painting"]
    row = table_of(small, CPU, records(art, make_record)).rows[0]
    assert near(row.cells["Art"], 72, 2, 3)
    assert row.averages[""] == Stat(None, None, 0, None)


def test_what_was_not_run_keeps_the_papers_figure(small: Recipe) -> None:
    row = table_of(small, CPU, []).rows[0]
    assert row.cells["Art"] == Stat(None, None, 0, 82.54)


def test_a_row_that_cannot_be_run_says_why(full: Table) -> None:
    assert full.rows[2].not_run == "not built"
    assert full.rows[2].cells["Art"].n == 0


def test_another_scale_fills_no_cell(small: Recipe, small_runs: list[Run], make_record: MakeRecord) -> None:
    assert table_of(small, scale("paper"), records(small_runs, make_record)).rows[0].cells["Art"].n == 0


def test_a_missing_shift_leaves_its_cell_empty(small: Recipe, small_runs: list[Run], make_record: MakeRecord) -> None:
    made = table_of(small, CPU, [make_record(small_runs[0], shifts={})])
    assert made.rows[0].cells["Art"].n == 1
    assert made.rows[1].cells["Art"].n == 0


def test_results_from_other_images_stay_out_and_are_counted(
    small: Recipe, small_runs: list[Run], make_record: MakeRecord
) -> None:
    strangers = [make_record(small_runs[0], 0.1, data="x" * 64)]
    made = table_of(small, CPU, strangers + records(small_runs, make_record))
    assert near(made.rows[0].cells["Art"], 72, 2, 3)
    assert any(note.startswith("1 result") for note in made.notes)


def test_it_keeps_the_records_behind_it_once(full: Table) -> None:
    assert len(full.records) == 6


def test_it_names_its_scale_and_what_is_oracle(small: Recipe, small_runs: list[Run], make_record: MakeRecord) -> None:
    chosen = small.rows[0].model_copy(update={"oracle": True})
    made = table_of(small.model_copy(update={"rows": [chosen]}), CPU, records(small_runs, make_record))
    assert made.notes[0].startswith("scale cpu: ")
    assert "oracle: chosen with target labels" in made.notes
    assert made.rows[0].label == "MixStyle (oracle)"


def test_it_names_the_papers_misprints() -> None:
    assert any("76.41" in note for note in table_of(recipe("pacs-long-tailed"), CPU, []).notes)


def test_halves_of_a_table_have_their_own_averages() -> None:
    row = table_of(recipe("pacs-imbalanced"), CPU, []).rows[0]
    assert {group: stat.paper for group, stat in row.averages.items()} == {
        "data-imbalance": 75.65,
        "class-imbalance": 48.82,
    }


def test_statistics_of_nothing_are_nothing() -> None:
    assert seeds_of({}, 1.0) == Stat(None, None, 0, 1.0)
    assert average_of([{0: 0.5}, {}], None) == Stat(None, None, 0, None)


def test_an_average_is_over_the_seeds_that_all_columns_have() -> None:
    stat = average_of([{0: 0.5, 1: 0.7, 2: 0.9}, {0: 0.3, 1: 0.5}], None)
    # averages of seeds 0 and 1: 40 and 60; seed 2 has only one column
    assert near(stat, 50, math.sqrt(200), 2)


def test_columns_that_share_no_seed_have_no_average() -> None:
    assert average_of([{0: 0.5}, {1: 0.7}], 60.0) == Stat(None, None, 0, 60.0)


def test_a_time_is_the_mean_over_columns_of_each_seed(
    small: Recipe, small_runs: list[Run], make_record: MakeRecord
) -> None:
    timed = recipe("pacs-test-time-adaptation").model_copy(update={"columns": small.columns})
    milliseconds = {
        (domain, seed): 4.0 + seed + (domain == "sketch") for domain in ("art_painting", "sketch") for seed in range(3)
    }
    made = [
        make_record(run, 0.5, {"tent": 0.6}, costs={"tent": milliseconds[run.domain, run.seed]}) for run in small_runs
    ]
    table = table_of(timed, CPU, made)
    rows = {row.label: row.time for row in table.rows}
    # seeds: 4.5, 5.5, 6.5
    assert rows["Tent (+Mixstyle)"] == Stat(5.5, 1.0, 3, 40.08)
    assert rows["T3A (+Mixstyle)"] == Stat(None, None, 0, 28.99)
    assert near(table.rows[3].cells["Art"], 60, 0.0, 3)


def test_a_table_without_times_has_no_column_of_them(full: Table) -> None:
    assert all(row.time is None for row in full.rows)
