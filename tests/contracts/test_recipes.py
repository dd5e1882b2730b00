"""What holds for every recipe: found in the folder, not listed; and a small grid over all, on generated images."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from styleshift.data.checking import Manifested
from styleshift.data.protocols import VALIDATION_SHARE
from styleshift.data.roots import catalogued
from styleshift.experiments.paper import paper_table, paper_tables
from styleshift.experiments.planning import runs_of, shift_of
from styleshift.experiments.recipe import recipe, recipe_names
from styleshift.experiments.runner import Grid
from styleshift.experiments.scales import scale
from styleshift.experiments.store import Store
from styleshift.experiments.table import TIME, table_of
from styleshift.training.progress import ShowProgress, silent

RECIPES = recipe_names()
PRINTED = [name for name in RECIPES if recipe(name).paper in paper_tables()]
BUILT_LATER = {
    "pacs-style-space",
    "reid",
    "reid-full",
    "pacs-other-methods",
    "pacs-domainbed",
    "pacs-boda-original",
    "pacs-boda-class-imbalanced",
}

# one training a line, chosen so that together they pass through every scenario, method and dataset
TRAINED = [
    ("pacs-original", "mixstyle+sb", "sketch", "original"),
    ("pacs-original", "baseline", "photo", "original"),
    ("pacs-original", "efdmix+sb", "art_painting", "original"),
    ("pacs-imbalanced", "dsu+sb", "cartoon", "data-imbalanced"),
    ("pacs-imbalanced", "mixstyle", "art_painting", "class-imbalanced"),
    ("pacs-removal-share", "efdmix", "photo", "data-imbalanced:0.6"),
    ("pacs-class-imbalance-methods", "dsu+sb+oversampling", "sketch", "class-imbalanced"),
    ("pacs-class-imbalance-methods", "dsu+undersampling", "sketch", "class-imbalanced"),
    ("pacs-class-imbalance-methods", "dsu+sb+reweighting", "sketch", "class-imbalanced"),
    ("pacs-single-source", "dsu", "photo", "original"),
    ("pacs-sample-selection", "mixstyle+sb+random-selection", "sketch", "class-imbalanced"),
    ("pacs-without-domain-labels", "mixstyle+sb", "cartoon", "original"),
    ("pacs-long-tailed", "dsu+sb", "art_painting", "long-tailed"),
    ("pacs-resnet50", "mixstyle", "sketch", "original"),
    ("vlcs-imbalanced", "mixstyle+sb", "caltech", "class-imbalanced"),
    ("office-home", "mixstyle+sb", "art", "original"),
    ("domainnet", "baseline+sb", "quickdraw", "original"),
    ("quickstart", "mixstyle+sb", "fog", "original"),
    ("pacs-test-time-adaptation", "baseline", "photo", "original"),
]
SHARED = ["pacs-alpha", "pacs-shift-variants", "pacs-shift-location"]


@contextmanager
def quiet(title: str) -> Iterator[ShowProgress]:
    yield silent


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("smoke")


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", ["smoke", "quickstart", "cpu", "paper"])
def test_it_makes_runs_at_every_scale(name: str, size: str) -> None:
    asked = recipe(name)
    runs = runs_of(asked, scale(size), [0])
    assert len({run.cell for run in runs}) == len(runs)
    assert {run.domain for run in runs} == set(asked.domains)


@pytest.mark.parametrize("name", RECIPES)
def test_every_shift_in_it_means_something(name: str) -> None:
    asked = recipe(name)
    assert all(shift_of(asked, row).name for row in asked.rows if row.not_run is None)


@pytest.mark.parametrize("name", [name for name in PRINTED if paper_table(recipe(name).paper).rows])
def test_it_names_rows_as_the_paper_does(name: str) -> None:
    asked = recipe(name)
    printed = {row.method for row in paper_table(asked.paper).rows}
    assert {row.paper for row in asked.rows} <= printed


@pytest.mark.parametrize("name", [name for name in RECIPES if name in paper_tables()])
def test_it_leaves_out_no_row_or_column_of_the_paper(name: str) -> None:
    asked, printed = recipe(name), paper_table(name)
    assert [row.paper for row in asked.rows if row.paper] == [row.method for row in printed.rows]
    averages = {f"{group}/Average".lstrip("/") for group in asked.groups}
    if asked.show == "columns":
        time = {TIME} if asked.timed else set()
        assert {column.name for column in asked.columns} | averages | time == set(printed.columns)


@pytest.mark.parametrize("name", [name for name in RECIPES if name in paper_tables()])
def test_what_the_paper_quotes_is_quoted(name: str) -> None:
    quoted = {row.method for row in paper_table(name).rows if row.quoted}
    assert {row.paper for row in recipe(name).rows if row.not_run == "quoted by the paper"} == quoted


def test_every_table_of_the_paper_has_a_recipe_or_is_known_to_lack_one() -> None:
    assert set(paper_tables()) - set(RECIPES) == BUILT_LATER


@pytest.mark.parametrize("name", RECIPES)
def test_its_domains_are_the_datasets(name: str) -> None:
    asked = recipe(name)
    entry = catalogued(asked.dataset)
    assert entry
    assert set(asked.domains) <= set(entry.facts.names.domains)


@pytest.mark.parametrize("name", RECIPES)
def test_what_can_be_got_has_its_split(name: str) -> None:
    entry = catalogued(recipe(name).dataset)
    assert entry
    mirror = entry.facts.mirror
    brings_lists = isinstance(entry, Manifested) or (mirror is not None and mirror.lists)
    assert recipe(name).split in VALIDATION_SHARE or brings_lists


@pytest.mark.parametrize(("name", "method", "domain", "scenario"), TRAINED)
def test_it_runs_and_fills_its_cell(name: str, method: str, domain: str, scenario: str, store: Path) -> None:
    asked, smoke = recipe(name), scale("smoke")
    runs = runs_of(asked, smoke, only=[f"method={method}", f"target={domain}", f"scenario={scenario}"])
    assert len(runs) == 1
    Grid(asked, runs, Store(store), quiet).run()
    rows = [row for row in table_of(asked, smoke, Store(store).records()).rows if row.method == method]
    assert rows
    assert all(sum(stat.n for stat in row.cells.values()) == 1 for row in rows)


@pytest.mark.parametrize("name", SHARED)
def test_it_uses_the_trainings_of_table_1(name: str, store: Path) -> None:
    asked, smoke = recipe(name), scale("smoke")
    runs = runs_of(asked, smoke, only=["method=mixstyle+sb", "target=sketch"])
    first = recipe("pacs-original")
    Grid(first, runs_of(first, smoke, only=["method=mixstyle+sb", "target=sketch"]), Store(store), quiet).run()
    assert Grid(asked, runs, Store(store), quiet).run().finished == 0
