"""`styleshift bench`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from styleshift import adaptation, named
from styleshift.training.adapted_rows import WORDS

Command = Callable[..., Any]
QUICK = ("--rounds", 1, "--batch", 2, "--size", 16)


def test_it_prints_a_line_a_method_beside_the_plain_model(styleshift: Command) -> None:
    said = styleshift("bench", "--arch", "smallnet", *QUICK)
    assert said.status == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("model smallnet with random weights, size 16, at layer2, threads ")
    assert [line.split()[1] for line in lines[2:]] == [
        "plain", "ts", "conststyle", "bn_stats", "t3a", "tent", "eata", "sar", "ts+t3a", "ts+tent",
    ]  # fmt: skip


def test_a_program_gets_every_number(styleshift: Command, model: Path) -> None:
    said = styleshift("bench", model, "--method", "tent", "--method", "memo:views=3", *QUICK, "--batch", 1, "--json")
    found = json.loads(said.out)
    assert [(cost["method"], cost["batch"]) for cost in found["costs"]] == [
        (method, batch) for batch in (2, 1) for method in ("plain", "tent", "memo:views=3")
    ]
    assert found["costs"][2]["forwards"] == 4
    assert found["model"] == str(model)
    assert found["costs"][0]["ratio"] == {"median": 1, "low": 1, "high": 1}


def test_an_unknown_method_is_one_line(styleshift: Command) -> None:
    said = styleshift("bench", "--arch", "smallnet", "--method", "tnet", *QUICK)
    assert said.status == 2
    assert said.err.splitlines()[-1].startswith("styleshift: nothing at test time is called 'tnet'")


def test_a_model_and_an_architecture_are_one_too_many(styleshift: Command, model: Path) -> None:
    said = styleshift("bench", model, "--arch", "smallnet", *QUICK)
    assert (said.status, said.err) == (
        2,
        "styleshift: bench takes a model's folder, or --arch for random weights; not both\n",
    )


LEARNING = [name for name in WORDS if named.find(adaptation, name).sees.updates_weights]


def test_every_method_that_learns_is_measured_learning(styleshift: Command) -> None:
    """On noise and random weights, where no prediction is sure."""
    methods = ["memo:views=2" if name == "memo" else name for name in [*LEARNING, "ts+eata", "sar:margin=0.3"]]
    asked = [word for name in methods for word in ("--method", name)]
    found = json.loads(styleshift("bench", "--arch", "smallnet", *asked, *QUICK, "--json").out)
    costs = {cost["method"]: cost for cost in found["costs"]}
    assert [name for name in methods if not costs[name]["backwards"]] == ["sar:margin=0.3"]
    assert costs["sar"]["backwards"] == 2
    assert [name for name, cost in costs.items() if cost["worst_case"]] == ["eata", "sar", "ts+eata"]


def test_an_opened_filter_is_marked_as_the_worst_case(styleshift: Command) -> None:
    lines = styleshift("bench", "--arch", "smallnet", "--method", "tent", "--method", "sar", *QUICK).out.splitlines()
    assert [line.endswith("  worst case: every sample learns") for line in lines[2:]] == [False, False, True]


def test_styles_are_measured_at_every_layer_that_is_named(styleshift: Command) -> None:
    asked = ("--method", "conststyle:at=layer1", "--method", "ts:at=layer3")
    said = styleshift("bench", "--arch", "smallnet", *asked, *QUICK, "--json")
    assert said.status == 0, said.err
    assert all(cost["refused"] is None for cost in json.loads(said.out)["costs"])


@pytest.mark.parametrize(
    ("method", "words"),
    [("conststyle:at=layer9", "layer9"), ("tent:learning_rate=-1", "learning_rate is a number of at least 0")],
)
def test_a_mistaken_setting_is_one_line(method: str, words: str, styleshift: Command) -> None:
    said = styleshift("bench", "--arch", "smallnet", "--method", method, *QUICK)
    assert said.status == 2
    assert words in said.err
    assert said.err.count("\n") == 1
