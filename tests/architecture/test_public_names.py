"""The public names: all there, loaded only when they are used, and none in the way of a module."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import styleshift

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "styleshift"


@pytest.mark.parametrize("name", styleshift.__all__)
def test_it_is_importable(name: str) -> None:
    assert getattr(styleshift, name) is not None


@pytest.mark.parametrize("name", styleshift.__all__)
def test_no_module_carries_its_name(name: str) -> None:
    assert not (SOURCE / f"{name}.py").exists()
    assert not (SOURCE / name).exists()


def test_a_type_checker_sees_the_same_names() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {name: f"styleshift.{home}" for name, home in styleshift._HOME.items()}


def test_the_page_of_the_api_lists_each_of_them_once() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, flags=re.M)) == sorted(styleshift.__all__)


def test_dir_lists_them() -> None:
    assert dir(styleshift) == sorted(styleshift.__all__)


def test_another_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"styleshift has no 'stile_of'; it has .*style_of"):
        _ = styleshift.stile_of


@pytest.mark.parametrize("module", ["styleshift", "styleshift.cli.main"])
def test_importing_it_does_not_import_torch(plain_python: Callable[[str], str], module: str) -> None:
    assert plain_python(f"import sys, {module}; print('torch' in sys.modules)") == "False\n"
