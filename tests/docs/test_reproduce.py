"""docs/reproduce.md: its commands work, its links lead somewhere, and its tables say what the recipes say."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import pages
from styleshift.cli.main import app
from styleshift.experiments.planning import runs_of
from styleshift.experiments.recipe import recipe, recipe_names
from styleshift.experiments.scales import scale

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text()
BLOCKS = "\n".join(re.findall(r"^```\n(.*?)^```", PAGE, flags=re.M | re.S))
COMMANDS = sorted({line.strip() for line in re.findall(r"styleshift (.*?)(?:[#>&]|$)", BLOCKS, flags=re.M)})
RECIPES = {name: int(runs) for name, runs in re.findall(r"^\| `([\w-]+)` \|[^|]*\|[^|]*\| (\d+) \|$", PAGE, flags=re.M)}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STYLESHIFT_STORE", raising=False)
    words = shlex.split(command)
    # planned and not trained; everything else as it stands there
    dry = ["--dry-run"] if words[0] == "run" and "--dry-run" not in words else []
    done = CliRunner().invoke(app, [*words, *dry])
    assert done.exit_code == 0, done.output


def test_the_page_shows_every_kind_of_command() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"recipes", "run", "table"}


def test_it_lists_every_recipe_with_its_runs() -> None:
    assert {name: len(runs_of(recipe(name), scale("cpu"), [0])) for name in recipe_names()} == RECIPES


def test_it_lists_every_scale_with_its_seeds_and_minutes() -> None:
    rows = dict(re.findall(r"^\| `(smoke|cpu|paper)` \|(.*)\|$", PAGE, flags=re.M))
    seeds = {"smoke": [0], "cpu": [0, 1, 2], "paper": [0, 1, 2, 3, 4]}
    assert {name: scale(name).seeds for name in rows} == seeds
    assert (scale("cpu").minutes, scale("paper").minutes) == (6, 40 * 60)
    assert "6 minutes" in rows["cpu"]
    assert "40 hours" in rows["paper"]


def test_runs_are_shared_as_it_says() -> None:
    first = {run.cell for run in runs_of(recipe("pacs-original"), scale("cpu"), [0])}
    left = {
        name: sum(run.cell not in first for run in runs_of(recipe(name), scale("cpu"), [0]))
        for name in ("pacs-alpha", "pacs-shift-variants", "pacs-shift-location")
    }
    assert set(left.values()) == {0}
    anew = runs_of(recipe("pacs-without-domain-labels"), scale("cpu"), [0])
    assert sum(run.cell not in first for run in anew) == 12


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([\w./-]+)\)", PAGE))))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / "docs" / link).exists()


def test_its_tables_are_those_of_the_committed_records() -> None:
    assert pages.MARKS.search(PAGE)
    assert pages.filled(PAGE) == PAGE
