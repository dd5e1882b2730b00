"""A dataset's content as a key."""

import os
from pathlib import Path

import pytest

from styleshift.data.content import content_key
from styleshift.data.domains import Domains


def test_the_key_is_remembered_while_the_files_stay(small: Domains, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    key = content_key(small, folder)
    (memo,) = (folder / "keys").iterdir()
    memo.write_text("0" * 64)
    assert content_key(small, folder) == "0" * 64
    os.utime(small.path(0), ns=(1, 1))
    assert content_key(small, folder) == key


def test_a_damaged_memory_is_not_believed(small: Domains, tmp_path: Path) -> None:
    key = content_key(small, tmp_path / "cache")
    (memo,) = (tmp_path / "cache" / "keys").iterdir()
    memo.write_text("half")
    assert content_key(small, tmp_path / "cache") == key


def test_order_and_names_are_content(small: Domains, tmp_path: Path) -> None:
    assert content_key(small.only([1, 0]), tmp_path) != content_key(small.only([0, 1]), tmp_path)


def test_missing_files_are_counted_and_one_is_named(small: Domains, tmp_path: Path) -> None:
    small.path(1).unlink()
    small.path(5).unlink()
    with pytest.raises(ValueError, match=f"2 of 12 files are missing, {small.files[1]} for one"):
        content_key(small, tmp_path)
