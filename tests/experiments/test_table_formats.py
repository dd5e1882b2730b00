"""Tables as text, Markdown, LaTeX and JSON."""

import json
from collections.abc import Callable

import pytest

from styleshift.experiments.planning import Run
from styleshift.experiments.recipe import Recipe, recipe
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.experiments.table import Table, table_of
from styleshift.experiments.table_formats import as_json, as_latex, as_markdown, as_text

CPU = scale("cpu")


@pytest.fixture
def table(small: Recipe, small_runs: list[Run], make_record: Callable[..., Record]) -> Table:
    """Art 70, 72, 74; sketch once, 60; no result of the shift."""
    art = [run for run in small_runs if run.domain == "art_painting"]
    made = [make_record(run, share, {}) for run, share in zip(art, (0.70, 0.72, 0.74), strict=True)]
    return table_of(small, CPU, [*made, make_record(small_runs[1], 0.60, {})])


def test_json_has_a_cell_for_every_column(table: Table) -> None:
    answer = json.loads(as_json(table))
    assert (answer["recipe"], answer["scale"]) == ("small", "cpu")
    first = answer["rows"][0]
    assert (first["method"], first["shift"]) == ("mixstyle", "none")
    assert first["cells"]["Art"] == {"mean": pytest.approx(72), "sd": pytest.approx(2), "n": 3, "paper": 82.54}
    assert first["cells"]["Sketch"] == {"mean": pytest.approx(60), "sd": None, "n": 1, "paper": 74.06}
    assert first["average"] == {"mean": pytest.approx(65), "sd": None, "n": 1, "paper": None}
    assert set(first["cells"]) == {"Art", "Sketch"}


def test_json_says_what_is_oracle_and_what_a_reader_must_know(small: Recipe) -> None:
    rows = [small.rows[0].model_copy(update={"oracle": True}), *small.rows[1:]]
    made = table_of(small.model_copy(update={"rows": rows}), CPU, [])
    answer = json.loads(as_json(made))
    flags = [(row["oracle"], row["not_run"]) for row in answer["rows"]]
    assert flags == [(True, None), (False, None), (False, "not built")]
    assert answer["notes"] == list(made.notes)
    assert "oracle: chosen with target labels" in answer["notes"]


def test_json_of_a_table_with_halves_has_their_averages_as_cells() -> None:
    first = json.loads(as_json(table_of(recipe("pacs-imbalanced"), CPU, [])))["rows"][0]
    assert first["cells"]["class-imbalance/Average"]["paper"] == 48.82
    assert first["average"] == {"mean": None, "sd": None, "n": 0, "paper": None}


def test_text_fits_any_width(table: Table) -> None:
    for width in (40, 200):
        assert max(map(len, as_text(table, width).split("Below")[0].splitlines())) <= width


def test_text_shows_ours_above_the_papers(table: Table) -> None:
    text = as_text(table, 100)
    assert text.index("72.0 ± 2.0") < text.index("82.54")
    assert "not run" in text
    assert "scale cpu" in text


def test_markdown_shows_both_in_one_cell_and_how_many_seeds(table: Table) -> None:
    assert "| MixStyle | 72.0 ± 2.0 (82.54) | 60.0 (74.06) | 65.0 | 1-3 |" in as_markdown(table)


def test_a_row_that_cannot_be_run_says_why(table: Table) -> None:
    assert "| BoDA (not built) | not run | not run | not run | 0 |" in as_markdown(table)


def test_latex_escapes_what_it_must(small: Recipe) -> None:
    odd = small.model_copy(update={"rows": [small.rows[0].model_copy(update={"paper": "50 % & more_"})]})
    latex = as_latex(table_of(odd, CPU, []))
    assert r"50 \% \& more\_ & not run" in latex
    assert latex.count(r"\\") == 2  # the head and one row


def test_latex_has_as_many_columns_as_cells(table: Table) -> None:
    latex = as_latex(table)
    assert r"\begin{tabular}{lrrrr}" in latex
    assert r"MixStyle & 72.0 $\pm$ 2.0 (82.54) & 60.0 (74.06) & 65.0 & 1-3 \\" in latex


def test_a_figure_shows_its_averages_alone() -> None:
    header = as_markdown(table_of(recipe("pacs-removal-share"), CPU, [])).splitlines()[2]
    assert header == "|  | 0%/Average | 20%/Average | 40%/Average | 60%/Average | 80%/Average | n |"


def test_one_column_needs_no_average() -> None:
    asked = recipe("pacs-original")
    one = asked.model_copy(update={"columns": asked.columns[3:]})
    header = as_markdown(table_of(one, CPU, [])).splitlines()[2]
    assert header == "|  | Sketch | n |"


@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_the_paper_is_spoken_of_where_it_has_figures(form: Callable[[Table], str], table: Table) -> None:
    assert "the paper's" in form(table)
    assert "the paper's" not in form(table_of(recipe("quickstart"), scale("quickstart"), []))


def test_times_stand_in_the_last_column_beside_the_papers(
    small_runs: list[Run], make_record: Callable[..., Record]
) -> None:
    made = [make_record(small_runs[0], 0.7, {"tent": 0.6}, costs={"tent": 4.5})]
    table = table_of(recipe("pacs-test-time-adaptation"), CPU, made)
    (line,) = [line for line in as_markdown(table).splitlines() if line.startswith("| Tent (+Mixstyle)")]
    assert line.split(" | ")[-2] == "4.5 (40.08)"
    assert as_markdown(table).splitlines()[2].endswith("| Average | Inference time (ms) | n |")
    cells = json.loads(as_json(table))["rows"][3]["cells"]
    assert cells["Inference time (ms)"] == {"mean": 4.5, "sd": None, "n": 1, "paper": 40.08}
