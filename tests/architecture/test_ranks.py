"""Who may import whom: the ranks of docs/architecture.md, and no import cycles, imports inside functions included."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "styleshift"

# Each place may import from the rows above its own and from itself. Places in one row do not know each other, but in
# the row of a whole model, where each file may import from those before it.
RANKS: tuple[tuple[str, ...], ...] = (
    ("named", "writing"),
    ("style", "data", "backbones"),
    ("layers",),
    (
        "twins",
        "adapting",
        "attaching",
        "hashing",
        "sources",
        "calibrating",
        "placing",
        "strange_looks",
        "layer_choice",
        "shifted",
        "stylizing",
    ),
    ("algorithms", "adaptation"),
    ("training",),
    ("experiments",),
    ("exporting", "report"),
    ("cli",),
)
WHOLE_MODEL = 3


def modules() -> dict[str, Path]:
    """Every module of the package below `styleshift`, by its dotted name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found[""]  # the package itself: it only hands names on, when they are asked for
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[str]:
    """The modules below `styleshift` that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relative to itself; write the whole name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            inside = name.removeprefix("styleshift.")
            if inside != name:
                yield inside if inside in MODULES else inside.rpartition(".")[0]


def place_of(module: str) -> str:
    return module.partition(".")[0]


def may_import(importer: str, imported: str) -> bool:
    """Whether the place `importer` knows enough to import from the place `imported`."""
    own, other = ((row, column) for place in (importer, imported) for row, column in [position(place)])
    if importer == imported or other[0] < own[0]:
        return True
    return own[0] == other[0] == WHOLE_MODEL and other[1] < own[1]


def position(place: str) -> tuple[int, int]:
    return next((row, places.index(place)) for row, places in enumerate(RANKS) if place in places)


def test_every_place_has_a_rank() -> None:
    known = {place for places in RANKS for place in places}
    assert {place_of(module) for module in MODULES} <= known


@pytest.mark.parametrize("module", sorted(MODULES))
def test_it_imports_only_from_ranks_above_its_own(module: str) -> None:
    wrong = [
        imported
        for imported in imports(MODULES[module])
        if imported and not may_import(place_of(module), place_of(imported))
    ]
    assert not wrong, f"{module} may not import {', '.join(wrong)}: put the code where enough is known"


def test_no_imports_go_in_circles() -> None:
    graph = {module: {name for name in imports(path) if name != module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"an import cycle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("layers", "style", True),
        ("style", "layers", False),
        ("style", "style", True),
        ("style", "data", False),
        ("shifted", "attaching", True),
        ("attaching", "shifted", False),
        ("cli", "named", True),
        ("report", "cli", False),
        ("cli", "report", True),
    ],
)
def test_the_rule_reads_the_table(importer: str, imported: str, allowed: bool) -> None:
    assert may_import(importer, imported) is allowed
