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
    alone, beside = ([round(line["images_per_second"]) for line in part] for part in _halves(measured("lab/threads.json")))
    words = PAGE.replace("\n", " ")
    assert f"train {alone[1]} images/s together, one with two threads {alone[0]}" in words
    assert f"it is {beside[1]} and {beside[0]}:" in words


def _halves(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return lines[: len(lines) // 2], lines[len(lines) // 2 :]
