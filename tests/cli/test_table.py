"""`styleshift table`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_json_is_what_the_contract_says(styleshift: Command, smoke: Path) -> None:
    said = styleshift("table", "pacs-original", "--scale", "smoke", "--store", smoke, "--format", "json")
    answer = json.loads(said.out)
    assert (said.status, answer["recipe"], answer["scale"]) == (0, "pacs-original", "smoke")
    (row,) = [row for row in answer["rows"] if (row["method"], row["shift"]) == ("mixstyle", "ts")]
    assert row["cells"]["Sketch"]["n"] == 1
    assert row["cells"]["Sketch"]["sd"] is None
    assert row["cells"]["Sketch"]["paper"] == 78.66
    assert row["cells"]["Art"] == {"mean": None, "sd": None, "n": 0, "paper": 82.59}
    assert row["average"] == {"mean": None, "sd": None, "n": 0, "paper": 84.28}


def test_it_makes_no_store_to_read_from(styleshift: Command, tmp_path: Path) -> None:
    assert styleshift("table", "quickstart").status == 0
    assert styleshift("recipes").status == 0
    assert list(tmp_path.iterdir()) == []


def test_json_has_a_flag_as_everywhere(styleshift: Command) -> None:
    assert styleshift("table", "quickstart", "--json").out == styleshift("table", "quickstart", "--format", "json").out


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_format_names_the_scale_and_what_is_not_run(styleshift: Command, form: str) -> None:
    said = styleshift("table", "vlcs-imbalanced", "--format", form)
    assert said.status == 0
    assert "scale cpu" in said.out
    assert "not run" in said.out


def test_records_are_copied_out_and_read_in(styleshift: Command, smoke: Path, tmp_path: Path) -> None:
    said = styleshift("table", "pacs-original", "--scale", "smoke", "--store", smoke, "--export", "results")
    assert said.err == "1 records copied to results\n"
    assert len(list((tmp_path / "results").glob("*.json"))) == 1
    again = styleshift("table", "pacs-original", "--scale", "smoke", "--import", "results", "--format", "json")
    direct = styleshift("table", "pacs-original", "--scale", "smoke", "--store", smoke, "--format", "json")
    assert again.out == direct.out


def test_an_edited_record_is_one_line(styleshift: Command, smoke: Path, tmp_path: Path) -> None:
    (record,) = (smoke / "records").glob("*.json")
    (tmp_path / "results").mkdir()
    edited = record.read_text().replace('"epochs": 1', '"epochs": 100')
    (tmp_path / "results" / "a.json").write_text(edited)
    said = styleshift("table", "pacs-original", "--import", "results")
    assert said.status == 2
    assert said.err.startswith("styleshift: results/a.json was edited")


def test_an_unknown_format_names_near_ones(styleshift: Command) -> None:
    said = styleshift("table", "pacs-original", "--format", "marcdown")
    assert (said.status, said.err) == (2, "styleshift: no format 'marcdown'; did you mean one of markdown?\n")
