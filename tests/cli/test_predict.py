"""`styleshift predict`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_it_gives_a_class_for_every_image(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("predict", model, pictures / "sketch", "--json")
    found = json.loads(said.out)
    assert (said.status, len(found)) == (0, 21)
    assert all(line["class"].startswith("class ") and 0 < line["confidence"] <= 1 for line in found)
    assert found[0]["file"] == str(pictures / "sketch" / "class 0" / "0.png")


def test_it_takes_single_files(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("predict", model / "model.safetensors", pictures / "photo" / "class 1" / "0.png")
    assert said.status == 0
    assert len(said.out.splitlines()) == 1


def test_plain_shifts_nothing(styleshift: Command, model: Path, pictures: Path) -> None:
    found = json.loads(styleshift("predict", model, pictures / "sketch", "--plain", "--json").out)
    assert not any(line["shifted"] for line in found)


def test_alpha_0_shifts_everything(styleshift: Command, model: Path, pictures: Path, tmp_path: Path) -> None:
    styleshift("fit", model, pictures, "--alpha", "0", "--to", tmp_path / "all.safetensors")
    found = json.loads(
        styleshift("predict", model, pictures / "sketch", "--styles", tmp_path / "all.safetensors", "--json").out
    )
    assert all(line["shifted"] for line in found)


def test_a_folder_without_images_is_one_line(styleshift: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = styleshift("predict", model, "empty")
    assert (said.status, said.err) == (2, "styleshift: no image in empty\n")


def test_a_damaged_image_is_one_line(styleshift: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no image")
    said = styleshift("predict", model, "bad.png")
    assert said.status == 2
    assert "bad.png" in said.err
    assert said.err.count("\n") == 1
