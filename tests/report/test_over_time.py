"""Streams as figures of the page."""

import base64
import json
from pathlib import Path

import pytest

from styleshift.adaptation.wrapping import Sees
from styleshift.report.over_time import Streamed, found_in, over_time
from styleshift.training.streams import Moment, Played


def played(method: str, order: str, episodic: bool = False) -> Played:
    moments = tuple(Moment(10 * n, 0.5, n / 10, 0.25) for n in (1, 2, 3))
    return Played(method, order, episodic, Sees(), 30, 0.5, {"sketch": 0.5}, moments)


ALL = (played("none", "iid"), played("tent", "iid"), played("tent", "long", episodic=True))


def written(path: Path, model: str = "a_model", key: str = "k") -> Path:
    facts = {"model": model, "key": key, "precision": "float32", "batch": 64, "seed": 0}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**facts, "played": [each.plain() for each in ALL]}))
    return path


def test_it_reads_what_was_written(tmp_path: Path) -> None:
    path = written(tmp_path / "streams-a_model.json")
    made = "batch 64, seed 0, precision float32"
    assert Streamed.of_text(path.read_text(), path) == Streamed("a_model", "k", made, ALL)


def test_files_are_found_below_every_folder_and_equal_ones_once(tmp_path: Path) -> None:
    written(tmp_path / "store" / "results" / "streams-a.json", "a")
    written(tmp_path / "sent" / "streams-b.json", "b")
    written(tmp_path / "sent" / "copy" / "streams-a.json", "a")
    (tmp_path / "sent" / "gate.json").write_text("{}")
    assert [each.model for each in found_in([tmp_path / "store", tmp_path / "sent"])] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": "a", "key": "k", "batch": 1}'])
def test_a_file_that_holds_something_else_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "streams-a.json").write_text(text)
    with pytest.raises(ValueError, match=r"streams-a\.json is not what `python -m benchmarks\.streams` writes"):
        found_in([tmp_path])


def test_it_has_a_view_an_order_and_a_line_a_method() -> None:
    figure = over_time(Streamed("a_model", "k", "", ALL), "stream-1")
    assert [view.name for view in figure.views] == ["iid", "long"]
    assert [key.name for key in figure.keys] == ["none", "tent", "tent, episodic"]
    first, second = (view.drawing for view in figure.views)
    assert first.count("<polyline") == 2
    assert second.count("<polyline") == 1
    assert "tent, 20 seen: 20.0 %" in first
    assert 'data-series="tent, episodic"' in second


def test_its_data_are_every_moment_in_percent() -> None:
    figure = over_time(Streamed("a_model", "k", "", ALL), "stream-1")
    assert len(figure.rows) == 9
    csv = base64.b64decode(figure.csv_link.partition("base64,")[2]).decode().splitlines()
    assert csv[0] == "order,method,seen,accuracy,accuracy so far,said most"
    assert csv[9] == 'long,"tent, episodic",30,30.0,50.0,25.0'
