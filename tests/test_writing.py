"""Files that are there whole or not at all."""

import os
from pathlib import Path

import pytest

from styleshift.writing import atomically


def test_the_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with atomically(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_it_drafts_in_the_same_folder_so_that_replacing_is_atomic(tmp_path: Path) -> None:
    with atomically(tmp_path / "file.txt") as draft:
        assert draft.parent == tmp_path
        assert draft.exists()


def test_it_makes_missing_folders(tmp_path: Path) -> None:
    with atomically(tmp_path / "a" / "b" / "file.txt") as draft:
        draft.write_bytes(b"1")
    assert (tmp_path / "a" / "b" / "file.txt").read_bytes() == b"1"


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write() -> None:
        with atomically(path) as draft:
            draft.write_text("half")
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomically(tmp_path / "file.txt"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_no_draft_is_left_after_success(tmp_path: Path) -> None:
    with atomically(tmp_path / "file.txt"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_a_draft_that_another_writer_put_in_place_of_ours_is_what_counts(tmp_path: Path) -> None:
    with atomically(tmp_path / "file.txt") as draft:  # as libraries do that replace a file themselves
        other = tmp_path / "other"
        other.write_text("theirs")
        os.replace(other, draft)
    assert (tmp_path / "file.txt").read_text() == "theirs"


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    with atomically(tmp_path / "file.txt") as one, atomically(tmp_path / "file.txt") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "file.txt").read_text() == "one"


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX")
def test_it_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.touch()
    with atomically(tmp_path / "file.txt"):
        pass
    assert (tmp_path / "file.txt").stat().st_mode == plain.stat().st_mode
