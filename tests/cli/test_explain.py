"""`styleshift explain`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_it_gives_score_and_nearest_source_of_every_image(styleshift: Command, model: Path, pictures: Path) -> None:
    answer = json.loads(styleshift("explain", model, pictures / "sketch", "--json").out)
    assert (answer["alpha"], answer["at"], len(answer["images"])) == (3.0, "layer2", 21)
    assert all(line["far"] == (line["score"] > 3) for line in answer["images"])
    assert {line["nearest"] for line in answer["images"]} <= {"art_painting", "cartoon", "photo"}


def test_it_explains_at_the_layer_asked_for(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("explain", model, pictures / "sketch", "--at", "layer1", "--json")
    assert json.loads(said.out)["at"] == "layer1"


def test_text_counts_what_is_far(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("explain", model, pictures / "sketch")
    assert len(said.out.splitlines()) == 21
    assert "of 21 are farther than 3 spreads after layer2; nearest: " in said.err


def test_a_layer_without_styles_names_those_with(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("explain", model, pictures, "--at", "layer9")
    assert said.status == 2
    assert "styles-layer1.safetensors, styles-layer2.safetensors" in said.err
