"""What the tests of the pages share: blocks of code, and commands."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from styleshift.cli.main import app

FENCE = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```", flags=re.M | re.S)

# commands run as they stand on a page, but for what would take long: an option that comes twice counts as given last
IN_SMALL = {
    "train": ["--backbone", "smallnet", "--from-scratch", "--epochs", "1", "--batch-size", "16"],
    "run": ["--scale", "smoke", "--seeds", "0", "--only", "method=mixstyle", "--jobs", "1"],
    "table": ["--scale", "smoke"],
    "recipes": ["--scale", "smoke"],
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands behind that, and its text."""

    language: str
    info: str
    text: str

    @property
    def commands(self) -> list[list[str]]:
        """The words of every line, without its comment."""
        return [words for line in self.text.splitlines() if (words := shlex.split(line, comments=True))]


def blocks_of(page: Path, language: str) -> list[Block]:
    """The page's blocks in this language, in order."""
    found = [Block(*groups) for groups in FENCE.findall(page.read_text(encoding="utf-8"))]
    return [block for block in found if block.language == language]


def parsed(words: list[str]) -> None:
    """Parse the options of a styleshift command and run nothing; what is wrong raises."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("styleshift", list(words))
    while words:
        name, command, words = command.resolve_command(context, list(words))
        if hasattr(command, "resolve_command"):
            context = command.make_context(name, list(words), parent=context)
            continue
        command.make_context(name, list(words), parent=context)
        return


def run(words: list[str]) -> None:
    """Run a styleshift command in small; it has to end well."""
    target = {"run quickstart": ["--only", "target=fog"], "run pacs-original": ["--only", "target=sketch"]}
    in_small = [*IN_SMALL.get(words[0], []), *target.get(" ".join(words[:2]), [])]
    result = CliRunner().invoke(app, [*words, *in_small])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, f"{shlex.join(words)}: {result.output}"
