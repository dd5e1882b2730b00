"""`styleshift explain`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_it_gives_score_and_nearest_source_of_every_image(styleshift: Command, model: Path, pictures: Path) -> None:
    answer = json.loads(styleshift("explain", model, pictures / "sketch", "--json").out)
    assert (answer["alpha"], answer["at"], len(answer["images"])) == (3.0, "layer2", 21)
    assert all(line["far"] == (line["score"] > 3) for line in answer["images"])
    assert {line["nearest"] for line in answer["images"]} <= {"art_painting", "cartoon", "photo"}


def test_it_gives_what_predict_says_with_and_without_the_shift(
    styleshift: Command, model: Path, pictures: Path
) -> None:
    lines = json.loads(styleshift("explain", model, pictures / "sketch", "--json").out)["images"]
    plain = json.loads(styleshift("predict", model, pictures / "sketch", "--plain", "--json").out)
    shifted = json.loads(styleshift("predict", model, pictures / "sketch", "--json").out)
    for side, said in (("before", plain), ("after", shifted)):
        assert [line[side] for line in lines] == [{name: s[name] for name in ("class", "confidence")} for s in said]


def test_it_explains_at_the_layer_asked_for(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("explain", model, pictures / "sketch", "--at", "layer1", "--json")
    assert json.loads(said.out)["at"] == "layer1"


def test_text_is_a_table_and_counts_what_is_far(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("explain", model, pictures / "sketch")
    lines = said.out.splitlines()
    assert len(lines) == 22
    assert lines[0].split() == ["score", "nearest", "before", "after", "image"]
    assert "of 21 are farther than 3 spreads after layer2; the shift changes the class of " in said.err


def test_the_gallery_is_written_beside_the_table(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    said = styleshift("explain", model, pictures / "sketch")
    page = (tmp_path / "explained.html").read_text()
    assert said.err.endswith("gallery: explained.html\n")
    assert page.count('src="data:image/jpeg;base64,') == 21
    assert "<h1>21 images, explained</h1>" in page


def test_with_json_there_is_a_gallery_only_where_it_is_asked_for(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    styleshift("explain", model, pictures / "sketch", "--json")
    assert not (tmp_path / "explained.html").exists()
    said = styleshift("explain", model, pictures / "sketch", "--json", "--gallery", "g.html")
    assert len(json.loads(said.out)["images"]) == 21
    assert (tmp_path / "g.html").is_file()


def test_without_the_extra_a_gallery_asked_for_is_one_line_and_the_table_needs_none(
    styleshift: Command, model: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    asked = styleshift("explain", model, pictures / "sketch", "--gallery", "g.html")
    assert (asked.status, asked.err) == (2, "styleshift: an HTML page needs jinja2: pip install 'styleshift[report]'\n")
    said = styleshift("explain", model, pictures / "sketch")
    assert (said.status, len(said.out.splitlines())) == (0, 22)
    assert said.err.endswith("no gallery: an HTML page needs jinja2: pip install 'styleshift[report]'\n")


def test_a_layer_without_styles_names_those_with(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("explain", model, pictures, "--at", "layer9")
    assert said.status == 2
    assert "styles-layer1.safetensors, styles-layer2.safetensors" in said.err
