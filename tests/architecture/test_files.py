"""Files: none too long, none without a test, none with a name that says nothing."""

import ast
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "styleshift"
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60
SAYS_NOTHING = {"util", "utils", "common", "helper", "helpers", "misc", "base"}

SOURCES = sorted(SOURCE.rglob("*.py"))
WRITTEN = sorted(chain(SOURCES, *((ROOT / folder).rglob("*.py") for folder in ("benchmarks", "examples"))))


def called(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name != "__init__.py"], ids=called)
def test_a_source_file_has_its_test_file(path: Path) -> None:
    folder = ROOT / "tests" / path.parent.relative_to(SOURCE)
    wanted = folder / f"test_{path.stem.removeprefix('_')}.py"
    assert wanted.is_file(), f"{called(path)} has no {called(wanted)}"


@pytest.mark.parametrize("path", WRITTEN, ids=called)
def test_a_file_is_no_longer_than_can_be_kept_in_mind(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE


@pytest.mark.parametrize("path", WRITTEN, ids=called)
def test_a_function_is_no_longer_than_a_page(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert not [node.name for node in functions if lines_of(node) > MOST_LINES_OF_A_FUNCTION]


def test_a_files_name_says_what_is_in_it() -> None:
    assert not [called(path) for path in WRITTEN if SAYS_NOTHING & set(path.relative_to(ROOT).with_suffix("").parts)]


@pytest.mark.parametrize("path", SOURCES, ids=called)
def test_a_source_file_opens_with_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=called)
def test_no_error_is_caught_without_naming_it(path: Path) -> None:
    handlers = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ExceptHandler)
    ]
    caught = [ast.unparse(handler.type) if handler.type else "everything" for handler in handlers]
    assert not {"everything", "Exception", "BaseException"} & set(caught)
