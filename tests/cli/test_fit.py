"""`styleshift fit`."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from styleshift.cli.fit import batches
from styleshift.cli.models import Loaded, loaded

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


@pytest.mark.filterwarnings("ignore:shifting at no layer recovers")
def test_it_finds_the_threshold_and_the_layers(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    asked = ("--alpha", "auto", "--gate-at", "layer1", "--at", "auto", "--false-shift", "0.05", "--holdout", pictures)
    said = styleshift("fit", model, pictures, "--to", tmp_path / "s.safetensors", *asked, "--json")
    assert said.status == 0, said
    assert "by agreement" not in said.err
    answer = json.loads(said.out)
    assert answer.get("gate_at", answer["at"]) == "layer1"
    assert answer["calibration"]["held_out"] == 84
    assert answer["calibration"]["shifted"] == 4 / 84
    best = answer["calibration"]["tried"][0]
    assert best["alpha"] == answer["alpha"]
    assert best["at"] == [answer["at"], *answer.get("then", [])]
    assert answer.get("fraction", 1.0) == best["fraction"]
    explained = styleshift("explain", model, pictures, "--styles", tmp_path / "s.safetensors", "--json")
    assert sum(image["far"] for image in json.loads(explained.out)["images"]) == 4
    assert json.loads(explained.out)["gate_at"] == "layer1"


def test_it_says_where_it_is_decided(styleshift: Command, model: Path, pictures: Path, tmp_path: Path) -> None:
    asked = ("--alpha", "auto", "--gate-at", "layer1", "--false-shift", "0.2", "--holdout", pictures)
    said = styleshift("fit", model, pictures, "--to", tmp_path / "s.safetensors", *asked)
    assert "styles after layer2, alpha " in said.out
    assert " decided after layer1, from art_painting 21" in said.out
    assert "shifted of 84 held-out images: 19.0%" in said.err


def test_it_shifts_after_several_layers_a_part_of_the_way(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    asked = ("--at", "layer1,layer2", "--variant", "partial=0.5", "--alpha", "2", "--to", tmp_path / "s.safetensors")
    said = styleshift("fit", model, pictures, *asked, "--json")
    assert said.status == 0, said
    assert json.loads(said.out) == {
        "styles": str(tmp_path / "s.safetensors"),
        "at": "layer1",
        "alpha": 2.0,
        "then": ["layer2"],
        "fraction": 0.5,
        "images": {"art_painting": 21, "cartoon": 21, "photo": 21, "sketch": 21},
    }
    explained = styleshift("explain", model, pictures, "--styles", tmp_path / "s.safetensors", "--json")
    assert explained.status == 0, explained.err
    assert len(json.loads(explained.out)["images"]) == 84
    assert styleshift("fit", model, pictures, *asked).out.startswith(
        f"{tmp_path / 's.safetensors'}: styles after layer1 and layer2, alpha 2, from art_painting 21"
    )


def test_a_found_threshold_is_mahalanobis_own_unless_the_papers_metric_is_asked_for(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    asked = ("--alpha", "auto", "--holdout", pictures, "--to", tmp_path / "s.safetensors")
    own, same, papers = (
        styleshift("fit", model, pictures, *asked, *metric)
        for metric in ((), ("--metric", "mahalanobis"), ("--metric", "euclidean"))
    )
    assert own.out == same.out
    assert " decided after layer2, from" in own.out
    assert "decided after" not in papers.out
    assert "shifted of 84 held-out images: 4.8%" in own.err
    assert "shifted of 84 held-out images: 4.8%" in papers.err


def test_a_mistaken_threshold_is_one_line(styleshift: Command, model: Path, pictures: Path) -> None:
    for mistake, words in (
        (("--alpha", "much"), "a number of at least 0, or auto; got 'much'"),
        (("--alpha", "-1"), "alpha is at least 0"),
        (("--false-shift", "0.1"), "find the threshold, with --alpha auto; got --alpha 3"),
        (("--alpha", "auto", "--false-shift", "2"), "between 0 and 1; got 2.0"),
        (("--alpha", "auto"), "at least 20 held-out images"),
        (("--at", "auto"), "needs alpha='auto'"),
        (("--alpha", "auto", "--gate-at", "layer9"), "layer9"),
        (("--at", "layer2,layer1"), "'layer2' needs to be a layer that runs before 'layer1'"),
        (("--at", "layer1,layer1"), "at names one layer, or several different ones"),
        (("--at", "layer1,layer9"), "layer9"),
        (("--variant", "half"), "a variant is one of ts, all, sampled, soft, partial"),
        (("--variant", "all", "--alpha", "auto"), "variant 'all' shifts every sample"),
    ):
        said = styleshift("fit", model, pictures, *mistake)
        assert said.status == 2
        assert words in said.err
        assert said.err.count("\n") == 1


def test_classes_are_those_that_the_model_counts(model: Path, pictures: Path) -> None:
    network = loaded(str(model), None, None, None)
    turned = replace(network, class_names=network.class_names[::-1])
    (own, _, _), *_ = batches_as(network, pictures)
    (other, _, _), *_ = batches_as(turned, pictures)
    assert len(own.unique()) > 1
    assert torch.equal(other, 6 - own)


def batches_as(network: Loaded, pictures: Path) -> Iterator[tuple[Tensor, int, int]]:
    """The classes of every batch, and of how many images and domains."""
    for batch in batches(str(pictures), None, network, judged=True):
        assert len(batch) == 3
        yield batch[1], len(batch[0]), len(batch[2])


def test_where_it_counts_others_they_are_left_out_and_one_line_says_so(
    model: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(loaded(str(model), None, None, None), class_names=("cat", "dog"))
    assert {len(batch) for batch in batches(str(pictures), None, other, judged=True)} == {2}
    said = capsys.readouterr().err
    assert said.startswith("layers are compared by agreement with the model's own answers: the model knows no class")
    assert said.count("\n") == 1
    assert {len(batch) for batch in batches(str(pictures), None, other)} == {2}
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("ignore:shifting at no layer recovers")
def test_of_held_out_images_with_other_classes_layers_are_judged_by_agreement(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    weights = load_file(model / "model.safetensors")
    save_file({name.rpartition("/")[2]: tensor for name, tensor in weights.items()}, tmp_path / "w.safetensors")
    network = ("--arch", "smallnet", "--transform", "light", "--classes", "a,b,c,d,e,f,g")
    asked = ("--alpha", "auto", "--gate-at", "layer2", "--at", "auto", "--holdout", pictures)
    said = styleshift("fit", tmp_path / "w.safetensors", pictures, *asked, *network)
    assert said.status == 0, said.err
    assert said.err.count("by agreement with the model's own answers: the model knows no class class 0") == 1
