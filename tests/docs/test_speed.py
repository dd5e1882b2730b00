"""docs/speed.md: every figure is the one of a kept result."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
SHOWN = [float(number) for number in re.findall(r"\| ([\d.]+) \|", PAGE)]


def measured(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "results" / name).read_text())["measured"]
    return found


def test_the_ratios_are_those_that_were_measured() -> None:
    layers = [round(line["ratio"], 1) for line in measured("core/layers.json")]
    planning = [round(line["ratio"]) for line in measured("core/planning.json")]
    loading = [round(line["ratio"], 1) for line in measured("lab/loading.json")]
    assert [*layers, *planning, *loading] == SHOWN


def test_the_share_of_loading_and_the_memory_are_those_that_were_measured() -> None:
    (loading,) = measured("lab/loading.json")
    assert f"{100 * loading['share']:.1f} % of its time goes into loading" in PAGE
    words = PAGE.replace("\n", " ").replace("resident ", "")
    for line in measured("lab/memory.json"):
        assert f"{line['gib']:.2f} GiB in {line['precision']} with batches of {line['batch']}" in words


def test_the_images_a_second_of_threads_are_those_that_were_measured() -> None:
    one, two, one_beside, two_beside = (round(line["images_per_second"]) for line in measured("lab/threads.json"))
    words = PAGE.replace("\n", " ")
    assert f"train {two} images/s together, one with two threads {one}." in words
    assert f"it is {two_beside} and {one_beside}:" in words
