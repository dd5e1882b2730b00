"""A folder tree of the user's own."""

from pathlib import Path

import pytest

from styleshift.data.catalog.folder import Folder


def test_it_takes_its_names_from_the_folders(tree: Path) -> None:
    dataset = Folder().load(tree)
    assert dataset.name == "tree"
    assert dataset.domain_names == ("ink", "oil")
    assert dataset.class_names == ("ant", "bee", "zebra")


def test_a_domain_may_lack_a_class(tree: Path) -> None:
    assert Folder().load(tree).counts().tolist() == [[3, 2, 0], [2, 4, 1]]


def test_it_is_named_by_where_it_is_even_from_inside(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert Folder().load(Path()).name == "tree"
