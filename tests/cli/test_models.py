"""MODEL on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from styleshift.cli.models import class_names, loaded


def test_a_folder_names_its_own_network(model: Path) -> None:
    found = loaded(str(model), None, None, None)
    assert (type(found.model).__name__, found.transform, len(found.class_names)) == ("SmallNet", "light", 7)
    assert not found.model.training


def test_a_folder_without_a_model_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="A weights file needs --arch and --classes"):
        loaded(str(tmp_path), None, None, None)


def test_a_broken_model_is_one_line(styleshift: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "gm").mkdir()
    (tmp_path / "gm" / "model.safetensors").write_bytes(bytes(range(256)) * 4)
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    said = styleshift("predict", "gm", "1.png")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert said.err.startswith("styleshift: gm/model.safetensors is not a whole safetensors file")


def test_a_network_by_name_needs_its_classes(model: Path) -> None:
    with pytest.raises(ValueError, match="--arch needs --classes"):
        loaded(str(model / "model.safetensors"), "smallnet", None, None)


def test_styles_that_nobody_asked_for_may_be_missing(model: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes())
    alone = loaded(str(tmp_path), None, None, None)
    assert alone.shifted(None, None) is None
    with pytest.raises(FileNotFoundError, match="beside the model there are none"):
        alone.shifted(None, "layer2")


def test_classes_are_a_number_or_names() -> None:
    assert class_names("2") == ("class 0", "class 1")
    assert class_names("cat, dog") == ("cat", "dog")
