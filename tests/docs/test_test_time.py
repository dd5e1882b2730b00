"""docs/test-time.md: its code runs, its table says what the methods say, its commands and options exist."""

import json
import re
from pathlib import Path

import pytest
import typer

from benchmarks import streams as streams_of_a_store
from styleshift import adaptation, named
from styleshift.cli.main import app
from styleshift.training.streams import ORDERS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGE = (ROOT / "docs/test-time.md").read_text()
(CODE,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, flags=re.M)}
COMMANDS = re.findall(r"^(styleshift|python -m benchmarks\.streams) (.*)$|^(styleshift bench)$", PAGE, flags=re.M)


def test_its_code_runs() -> None:
    names: dict[str, object] = {}
    exec(compile(CODE, "test-time.md", "exec"), names)
    assert names["both"]


def test_every_method_has_its_line() -> None:
    assert set(ROWS) == set(named.names(adaptation))


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_line_says_what_the_method_says(name: str) -> None:
    sees = named.find(adaptation, name).sees
    sources, depends, changes, _ = ROWS[name]
    assert ("mean styles" in sources) == sees.source_styles
    assert ("the batch" in depends) == sees.other_images
    assert ("those before" in depends) == sees.earlier_batches
    assert any(word in changes for word in ("scale and shift", "weights")) == sees.updates_weights


def test_every_order_has_its_line() -> None:
    assert set(ORDERS) <= set(re.findall(r"^\| `([\w-]+)` \|", PAGE, flags=re.M))


def test_the_streams_are_those_that_were_measured() -> None:
    between = PAGE.split("<!-- streams -->")[1].split("<!-- end of streams -->")[0]
    head, _, *lines = ([cell.strip() for cell in line.split("|")[1:-1]] for line in between.strip().splitlines())
    played = {
        (each["method"], f"{domain} {each['order']}"): f"{100 * each['accuracy']:.1f}"
        for domain in ("sketch", "art")
        for file in (RESULTS / "test-time").glob(f"streams*/*_{domain}*.json")
        for each in json.loads(file.read_text())["played"]
    }
    assert len(lines) == 10
    for method, *cells in lines:
        assert cells == [played.get((method, column), "") for column in head[1:]]


def test_every_command_and_option_exists() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    assert COMMANDS
    for program, rest, alone in COMMANDS:
        words = (rest or alone.partition(" ")[2]).split()
        options = {word for word in words if word.startswith("--")}
        if program.startswith("python"):
            assert options <= set(streams_of_a_store._parser()._option_string_actions)
        else:
            known = {opt for param in commands[words[0]].params for opt in param.opts}
            assert options <= known, words
