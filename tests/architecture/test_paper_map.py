"""docs/paper-map.md: every link leads somewhere."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

from styleshift.experiments.paper import paper_table, paper_tables
from styleshift.experiments.recipe import recipe_names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/paper-map.md").read_text()
SYMBOLS = re.findall(r"`(styleshift\.[\w.]+)`", PAGE)
FILES = re.findall(r"`((?:tests|recipes|results|docs)/[\w./-]+)`", PAGE)


@pytest.mark.parametrize("symbol", sorted(set(SYMBOLS)))
def test_a_symbol_of_the_map_exists(symbol: str) -> None:
    module, parts = _module_and_rest(symbol.split("."))
    assert reduce(getattr, parts, module)


@pytest.mark.parametrize("file", sorted(set(FILES)))
def test_a_file_of_the_map_exists(file: str) -> None:
    assert (ROOT / file).exists()


def test_the_map_names_every_numbered_equation() -> None:
    numbered = {int(n) for a, b in re.findall(r"Eqs?\. (\d)(?:-(\d))?", PAGE) for n in range(int(a), int(b or a) + 1)}
    assert numbered == set(range(1, 9))


def test_every_recipe_of_a_table_or_figure_stands_beside_its_label() -> None:
    on_map = {recipe: label for label, recipe in re.findall(r"\| `([^`]+)` \| `recipes/([\w-]+)\.toml`", PAGE)}
    assert on_map == {name: paper_table(name).label for name in recipe_names() if name in paper_tables()}


def _module_and_rest(parts: list[str]) -> tuple[object, list[str]]:
    for length in range(len(parts), 0, -1):
        try:
            return import_module(".".join(parts[:length])), parts[length:]
        except ModuleNotFoundError:
            continue
    raise AssertionError(f"no module in {parts}")
