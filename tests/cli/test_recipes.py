"""`styleshift recipes`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from styleshift.experiments.paper import paper_tables
from styleshift.experiments.recipe import recipe_names

Command = Callable[..., Any]


def test_it_lists_every_table_and_figure_of_the_paper(styleshift: Command) -> None:
    listed = {entry["name"]: entry for entry in json.loads(styleshift("recipes", "--json").out)}
    assert set(listed) == {*paper_tables(), *recipe_names()}
    assert listed["pacs-original"]["where"] == "Table 1"
    assert not listed["reid"]["recipe"]


def test_it_counts_what_is_done(styleshift: Command, smoke: Path) -> None:
    said = styleshift("recipes", "--scale", "smoke", "--store", smoke, "--json")
    listed = {entry["name"]: (entry["done"], entry["runs"]) for entry in json.loads(said.out)}
    assert listed["pacs-original"] == (1, 32)
    assert listed["pacs-alpha"] == (1, 8)
    assert listed["quickstart"] == (0, 12)
    assert listed["pacs-long-tailed"] == (0, 16)


def test_a_run_that_lacks_tests_of_a_recipe_is_not_done_for_it(styleshift: Command, smoke: Path) -> None:
    said = styleshift("recipes", "--scale", "smoke", "--store", smoke, "--json")
    listed = {entry["name"]: entry["done"] for entry in json.loads(said.out)}
    # the same training, but nobody has tested it with Tent and T3A
    assert (listed["pacs-original"], listed["pacs-test-time-adaptation"]) == (1, 0)


def test_it_counts_at_each_recipes_own_scale(styleshift: Command) -> None:
    listed = {entry["name"]: entry["runs"] for entry in json.loads(styleshift("recipes", "--json").out)}
    assert (listed["quickstart"], listed["pacs-original"]) == (36, 96)


def test_it_says_where_there_is_no_recipe(styleshift: Command) -> None:
    lines = styleshift("recipes").out.splitlines()
    (line,) = [line for line in lines if " reid " in line]
    assert line.startswith("Table 4")
    assert "no recipe" in line
