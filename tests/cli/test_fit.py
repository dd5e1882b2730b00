"""`styleshift fit`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

Command = Callable[..., Any]


def test_it_measures_the_styles_of_every_domain(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    said = styleshift("fit", model, pictures, "--to", tmp_path / "s.safetensors", "--alpha", "2", "--json")
    assert json.loads(said.out) == {
        "styles": str(tmp_path / "s.safetensors"),
        "at": "layer2",
        "alpha": 2.0,
        "images": {"art_painting": 21, "cartoon": 21, "photo": 21, "sketch": 21},
    }


def test_it_makes_clusters_where_asked(styleshift: Command, model: Path, pictures: Path, tmp_path: Path) -> None:
    said = styleshift("fit", model, pictures, "--to", tmp_path / "s.safetensors", "--clusters", "3", "--json")
    assert sum(json.loads(said.out)["images"].values()) == 84
    assert list(json.loads(said.out)["images"]) == ["cluster 1", "cluster 2", "cluster 3"]


def test_it_takes_a_weights_file_with_its_network(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    weights = load_file(model / "model.safetensors")
    save_file({name.rpartition("/")[2]: tensor for name, tensor in weights.items()}, tmp_path / "w.safetensors")
    arguments = ("--arch", "smallnet", "--classes", "7", "--transform", "light")
    said = styleshift("fit", tmp_path / "w.safetensors", pictures, *arguments)
    assert said.status == 0, said.err
    assert (tmp_path / "styles-layer2.safetensors").is_file()


def test_a_weights_file_of_another_network_is_one_line(styleshift: Command, model: Path, pictures: Path) -> None:
    arguments = ("--arch", "resnet18", "--classes", "7", "--transform", "light")
    said = styleshift("fit", model / "model.safetensors", pictures, *arguments)
    assert said.status == 2
    assert "is not a resnet18" in said.err
    assert said.err.count("\n") == 1


def test_a_layer_that_is_not_there_is_one_line(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("fit", model, pictures, "--at", "layer9")
    assert said.status == 2
    assert "layer9" in said.err


def test_an_empty_folder_is_one_line(styleshift: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = styleshift("fit", model, "empty")
    assert said.status == 2
    assert said.err.count("\n") == 1
