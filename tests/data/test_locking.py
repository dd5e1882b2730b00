"""A lock that dies with its holder."""

import threading
from pathlib import Path

from styleshift.data.locking import locked, remove_drafts
from styleshift.writing import atomically


def test_one_waits_for_the_other(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path / "lock"):
            order.append("second")

    with locked(tmp_path / "lock"):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(timeout=0.2)
        order.append("first")
    waiting.join(timeout=10)
    assert order == ["first", "second"]


def test_a_lock_file_left_behind_locks_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("left by a process long dead")
    with locked(tmp_path / "lock"):
        pass


def test_drafts_of_one_file_are_removed_and_others_are_not(tmp_path: Path) -> None:
    with atomically(tmp_path / "one") as draft:
        (tmp_path / ".two.draft").touch()
        (tmp_path / "one.txt").touch()
        remove_drafts(tmp_path / "one")
        assert not draft.exists()
        draft.touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".two.draft", "one", "one.txt"]
