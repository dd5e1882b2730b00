"""`styleshift compare`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_it_prints_a_line_a_method_and_a_verdict_a_domain(styleshift: Command, model: Path, pictures: Path) -> None:
    said = styleshift("compare", model, "--data", pictures, "--limit", 6)
    assert said.status == 0, said.err
    lines = said.out.splitlines()
    assert lines[0] == "24 images in batches of 64; every domain shuffled, from a fresh start"
    assert lines[1].split() == ["art_painting", "cartoon", "photo", "sketch", "average", "x", "time", "sees"]
    methods = ["none", "ts", "conststyle", "bn_stats", "t3a", "tent", "eata", "sar", "ts+t3a", "ts+tent"]
    assert [line.split()[0] for line in lines[2:12]] == methods
    assert lines[2].endswith("the image alone")
    assert lines[3].endswith("source styles")
    assert [any(domain in line and "% shifted" in line for line in lines[13:]) for domain in ("photo", "sketch")]
    assert len(lines) == 17


def test_a_program_gets_accuracy_cost_and_what_each_method_saw(
    styleshift: Command, model: Path, pictures: Path
) -> None:
    said = styleshift("compare", model, "--data", pictures, "--limit", 3, "--method", "tent", "--batch", 4, "--json")
    found = json.loads(said.out)
    assert [each["method"] for each in found["methods"]] == ["none", "ts", "tent"]
    tent = found["methods"][2]
    assert tent["sees"]["updates_weights"]
    assert tent["cost"]["backwards"] == 1
    assert set(tent["accuracy"]) == {"art_painting", "cartoon", "photo", "sketch"}
    assert [verdict["domain"] for verdict in found["verdicts"]] == list(tent["accuracy"])


def test_ts_is_the_shift_that_was_fitted_with_its_variant_and_its_gate(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    asked = ("--alpha", "auto", "--gate-at", "layer1", "--false-shift", "0.2", "--holdout", pictures)
    styleshift("fit", model, pictures, "--to", tmp_path / "s.safetensors", *asked)
    explained = styleshift("explain", model, pictures, "--styles", tmp_path / "s.safetensors", "--json")
    far = sum(image["far"] for image in json.loads(explained.out)["images"])
    methods = [word for name in ("ts:soft", "ts:partial=0.8+t3a") for word in ("--method", name)]
    arguments = ("--data", pictures, "--styles", tmp_path / "s.safetensors", *methods, "--json")
    found = json.loads(styleshift("compare", model, *arguments).out)
    assert sum(round(21 * verdict["shifted"]) for verdict in found["verdicts"]) == far == 16
    assert [each["shifted"] for each in found["methods"][2:]] == 2 * [found["methods"][1]["shifted"]]


def test_a_row_may_name_any_layer_whose_styles_lie_beside_the_model(
    styleshift: Command, model: Path, pictures: Path
) -> None:
    methods = ("--method", "conststyle:at=layer1", "--method", "ts:at=layer3")
    said = styleshift("compare", model, "--data", pictures, "--limit", 2, *methods, "--json")
    assert said.status == 0, said.err
    assert [each["refused"] for each in json.loads(said.out)["methods"]] == [None] * 4


def test_a_threshold_that_was_found_stays_at_its_layer(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    asked = ("--alpha", "auto", "--false-shift", "0.2", "--holdout", pictures)
    styleshift("fit", model, pictures, "--to", tmp_path / "s.safetensors", *asked)
    methods = [word for name in ("ts:at=layer1", "ts:at=layer1,alpha=3") for word in ("--method", name)]
    arguments = ("--data", pictures, "--styles", tmp_path / "s.safetensors", *methods, "--json")
    found = json.loads(styleshift("compare", model, *arguments).out)["methods"]
    assert found[2]["shifted"] == found[3]["shifted"] != found[1]["shifted"]


def test_without_styles_it_says_how_to_measure_them(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes())
    said = styleshift("compare", "bare", "--data", pictures)
    assert said.status == 2
    assert said.err == (
        "styleshift: no styles beside bare; measure them with `styleshift fit`, or give --styles FILE\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "tnet"), "nothing at test time is called 'tnet'"),
        (("--at", "layer9"), "no styles at "),
        (("--method", "conststyle:at=layer9"), "no styles at "),
        (("--method", "tent:learning_rate=-1"), "in 'tent:learning_rate=-1': learning_rate is a number"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...], said: str, styleshift: Command, model: Path, pictures: Path
) -> None:
    found = styleshift("compare", model, "--data", pictures, *arguments)
    assert found.status == 2
    assert found.err.startswith(f"styleshift: {said}")
    assert found.err.count("\n") == 1


def test_a_class_that_the_model_does_not_know_is_named(
    styleshift: Command, model: Path, pictures: Path, tmp_path: Path
) -> None:
    (tmp_path / "own" / "photo" / "zebra").mkdir(parents=True)
    picture = next(pictures.rglob("*.png"))
    (tmp_path / "own" / "photo" / "zebra" / "1.png").write_bytes(picture.read_bytes())
    said = styleshift("compare", model, "--data", tmp_path / "own")
    assert said.status == 2
    assert said.err.startswith("styleshift: the model knows no class zebra; it knows class 0, class 1")
