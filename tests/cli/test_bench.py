"""`styleshift bench`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
