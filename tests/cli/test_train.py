"""`styleshift train`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from styleshift.cli.train import settings_of, sha256_of

Command = Callable[..., Any]

TINY = ("--backbone", "smallnet", "--from-scratch", "--epochs", "1", "--batch-size", "21", "--method", "mixstyle")


def test_what_it_trains_predicts_and_shifts(styleshift: Command, pictures: Path, tmp_path: Path) -> None:
    said = styleshift("train", pictures, "--to", "mine", *TINY, "--target", "sketch")
    assert said.status == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("sketch, none: ")
    assert lines[1].startswith("sketch, ts: ")
    assert lines[2] == "mine: model and styles after layer2. Now `styleshift predict mine IMAGES`"
    left = {path.name for path in (tmp_path / "mine").iterdir()}
    assert left == {"lock", "model.safetensors", "styles-layer2.safetensors"}
    answer = json.loads(styleshift("explain", "mine", pictures / "sketch", "--json").out)
    assert {line["nearest"] for line in answer["images"]} <= {"art_painting", "cartoon", "photo"}


def test_it_can_be_read_by_a_program(styleshift: Command, pictures: Path) -> None:
    said = styleshift("train", pictures, "--to", "mine", *TINY, "--target", "photo", "--json")
    answer = json.loads(said.out)
    assert (answer["model"], answer["at"], answer["target"]) == ("mine", "layer2", "photo")
    assert list(answer["accuracy"]) == ["none", "ts"]
    assert all(0 <= share <= 1 for share in answer["accuracy"].values())


def test_it_never_starts_at_random_in_silence(styleshift: Command, pictures: Path) -> None:
    said = styleshift("train", pictures, "--to", "mine")
    assert said.status == 2
    assert said.err == (
        "styleshift: no weights to start resnet18 from; give --weights FILE, or --from-scratch for random ones\n"
    )


def test_an_unknown_method_is_one_line(styleshift: Command, pictures: Path) -> None:
    said = styleshift("train", pictures, "--to", "mine", "--from-scratch", "--method", "mixstile")
    assert said.status == 2
    assert "mixstyle" in said.err


def test_a_wrong_weights_file_is_one_line(styleshift: Command, pictures: Path, model: Path) -> None:
    said = styleshift("train", pictures, "--to", "mine", "--weights", model / "model.safetensors")
    assert said.status == 2
    assert "is not a resnet18" in said.err


def test_it_trains_as_the_cpu_scale_does_but_for_what_was_asked() -> None:
    settings = settings_of("dsu+sb", epochs=3)
    assert (settings.augment, settings.balance, settings.epochs, settings.batch_size) == ("dsu", True, 3, 128)


def test_weights_are_named_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"abc")
    assert sha256_of(tmp_path / "w") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(None) is None
    with pytest.raises(FileNotFoundError, match="no weights file"):
        sha256_of(tmp_path / "gone")
