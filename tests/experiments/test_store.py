"""The store: what is kept, who works on what, and what survives."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from styleshift.experiments import store as store_module
from styleshift.experiments.planning import Run
from styleshift.experiments.record import Record
from styleshift.experiments.store import ClaimLostError, Store, store_folder

MakeRecord = Callable[..., Record]

# A process of its own: claims a run, says whether it got it, and keeps it until its input ends.
_CLAIMANT = """
import sys
from pathlib import Path
from styleshift.experiments.store import Store
with Store(Path(sys.argv[1])).claimed("run") as claim:
    print("held" if claim else "refused", flush=True)
    sys.stdin.read()
"""


def claimant(folder: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(Path(store_module.__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "-c", _CLAIMANT, str(folder)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> None:
    process.communicate("")


def test_it_gives_back_what_was_added(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    record = make_record(small_runs[0])
    Store(tmp_path).add(record, "mine")
    assert Store(tmp_path).record(record.key) == record
    assert Store(tmp_path).in_cell(record.cell) == [record]
    assert Store(tmp_path).records() == [record]


def test_it_knows_nothing_of_other_runs(tmp_path: Path) -> None:
    assert Store(tmp_path).record("none") is None
    assert Store(tmp_path).in_cell("none") == []


def test_a_record_lies_in_a_file_that_can_be_committed(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    record = make_record(small_runs[0])
    Store(tmp_path).add(record, "mine")
    assert (tmp_path / "records" / "mine.json").read_text() == record.text()


def test_the_index_is_made_anew_when_it_is_lost(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    record = make_record(small_runs[0])
    Store(tmp_path).add(record, "mine")
    for file in tmp_path.glob("store.sqlite*"):
        file.unlink()
    assert Store(tmp_path).record(record.key) == record


def test_a_removed_file_is_a_removed_record(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    record = make_record(small_runs[0])
    Store(tmp_path).add(record, "mine")
    (tmp_path / "records" / "mine.json").unlink()
    assert Store(tmp_path).record(record.key) is None


def test_a_changed_file_is_read_anew(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    Store(tmp_path).add(make_record(small_runs[0], 0.25), "mine")
    (tmp_path / "records" / "mine.json").write_text(make_record(small_runs[0], 0.75).text())
    assert [record.accuracy for record in Store(tmp_path).records()] == [0.75]


def test_a_changed_file_may_be_that_of_another_run(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    Store(tmp_path).add(make_record(small_runs[0]), "mine")
    (tmp_path / "records" / "mine.json").write_text(make_record(small_runs[1]).text())
    assert Store(tmp_path).records() == [make_record(small_runs[1])]


def test_a_file_that_was_edited_is_refused(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    Store(tmp_path).add(make_record(small_runs[0], 0.25), "mine")
    file = tmp_path / "records" / "mine.json"
    file.write_text(file.read_text().replace("0.25", "0.75"))
    with pytest.raises(ValueError, match=r"mine\.json was edited: it does not match its checksum"):
        Store(tmp_path)


def test_a_run_has_one_file_whatever_it_was_called_before(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    Store(tmp_path).add(make_record(small_runs[0], 0.25), "from elsewhere")
    Store(tmp_path).add(make_record(small_runs[0], 0.75), "mine")
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["mine.json"]
    assert [record.accuracy for record in Store(tmp_path).records()] == [0.75]


def test_of_two_files_with_one_key_the_later_counts_every_time(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    Store(tmp_path).add(make_record(small_runs[0]), "b")
    timing = make_record(small_runs[0]).timing
    for name, day in (("a", 2), ("c", 3), ("d", 1)):
        later = timing.model_copy(update={"finished": f"2026-01-0{day}T00:00:00+00:00"})
        (tmp_path / "records" / f"{name}.json").write_text(make_record(small_runs[0], timing=later).text())
    assert [Store(tmp_path).records()[0].timing.finished[9] for _ in range(3)] == ["3", "3", "3"]


def test_nothing_is_made_before_something_is_kept(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    kept = Store(tmp_path / "runs")
    assert (kept.records(), kept.record("none"), kept.living_claims()) == ([], None, set())
    assert not (tmp_path / "runs").exists()
    kept.add(make_record(small_runs[0]), "mine")
    assert kept.records() == [make_record(small_runs[0])]


def test_a_damaged_index_is_named_with_what_to_do(tmp_path: Path) -> None:
    Store(tmp_path)
    for file in tmp_path.glob("store.sqlite-*"):
        file.unlink()
    (tmp_path / "store.sqlite").write_bytes(b"no database" * 200)
    with pytest.raises(ValueError, match=r"store\.sqlite is damaged .* Remove it"):
        Store(tmp_path)


def test_records_go_out_and_come_in_elsewhere(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    records = [make_record(run) for run in small_runs]
    for number, record in enumerate(records):
        here.add(record, f"run {number}")
    here.give_out([record.key for record in records[:2]], tmp_path / "results")
    assert there.take_in(tmp_path / "results") == 2
    assert there.records() == records[:2]


def test_what_is_known_is_not_taken_in_again(tmp_path: Path, small_runs: list[Run], make_record: MakeRecord) -> None:
    kept = Store(tmp_path / "store")
    kept.add(make_record(small_runs[0]), "mine")
    kept.give_out([kept.records()[0].key], tmp_path / "results")
    assert kept.take_in(tmp_path / "results") == 0


def test_more_tests_of_a_known_model_are_taken_in(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    here = make_record(small_runs[0], shifts={"ts:at=layer2": 0.6, "tent": 0.7}, costs={"tent": 4.0})
    there = make_record(small_runs[0], shifts={"ts:at=layer2": 0.1, "t3a": 0.8}, costs={"t3a": 5.0})
    kept = store_beside(tmp_path, here, there)
    assert kept.take_in(tmp_path / "results") == 1
    (joined,) = kept.records()
    assert {name: tested.accuracy for name, tested in joined.shifts.items()} == {
        "ts:at=layer2": 0.6,
        "tent": 0.7,
        "t3a": 0.8,
    }
    assert joined.costs == {"tent": 4.0, "t3a": 5.0}
    assert kept.take_in(tmp_path / "results") == 0
    assert [path.name for path in (tmp_path / "store" / "records").iterdir()] == ["mine.json"]


@pytest.mark.parametrize("changed", [{"final_loss": 0.31}, {"threads": 1}])
def test_tests_of_another_training_are_not(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord, changed: dict[str, object]
) -> None:
    here = make_record(small_runs[0], shifts={"ts:at=layer2": 0.6})
    there = make_record(small_runs[0], shifts={"t3a": 0.8}, **changed)
    kept = store_beside(tmp_path, here, there)
    assert kept.take_in(tmp_path / "results") == 0
    assert kept.records() == [here]


def store_beside(folder: Path, here: Record, there: Record) -> Store:
    (folder / "results").mkdir()
    (folder / "results" / "theirs.json").write_text(there.text())
    kept = Store(folder / "store")
    kept.add(here, "mine")
    return kept


def test_files_of_one_name_from_two_folders_are_both_kept(
    tmp_path: Path, small_runs: list[Run], make_record: MakeRecord
) -> None:
    for run in small_runs[:2]:
        folder = tmp_path / "results" / str(run.seed) / run.domain
        folder.mkdir(parents=True)
        (folder / "record.json").write_text(make_record(run).text())
    kept = Store(tmp_path / "store")
    assert kept.take_in(tmp_path / "results") == 2
    assert len(list((tmp_path / "store" / "records").glob("*.json"))) == 2


def test_a_run_is_claimed_once(tmp_path: Path) -> None:
    kept = Store(tmp_path)
    with kept.claimed("run") as first, Store(tmp_path).claimed("run") as second:
        assert first is not None
        assert second is None
        assert kept.living_claims() == {"run"}


def test_a_claim_ends_with_its_block(tmp_path: Path) -> None:
    kept = Store(tmp_path)
    with pytest.raises(ZeroDivisionError), kept.claimed("run"):
        raise ZeroDivisionError
    with kept.claimed("run") as again:
        assert again is not None


def test_another_process_does_not_get_a_claimed_run(tmp_path: Path) -> None:
    with Store(tmp_path).claimed("run"):
        other = claimant(tmp_path)
        assert other.stdout
        assert other.stdout.readline() == "refused\n"
        ended(other)


def test_the_claim_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    other = claimant(tmp_path)
    assert other.stdout
    assert other.stdout.readline() == "held\n"
    with Store(tmp_path).claimed("run") as ours:
        assert ours is None
    other.send_signal(signal.SIGKILL)
    ended(other)
    with Store(tmp_path).claimed("run") as ours:
        assert ours is not None


@pytest.mark.parametrize(("silent", "taken"), [(100.0, False), (140.0, True)])
def test_a_claim_from_elsewhere_lives_for_two_silent_minutes(tmp_path: Path, silent: float, taken: bool) -> None:
    kept = Store(tmp_path)
    with sqlite3.connect(tmp_path / "store.sqlite") as database:
        database.execute("INSERT INTO claims VALUES ('run', 'owner', 'another machine', 1, ?)", (time.time() - silent,))
    database.close()
    with kept.claimed("run") as ours:
        assert (ours is not None) == taken


def test_a_process_that_was_taken_over_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BEAT_SECONDS", 0.02)
    with Store(tmp_path).claimed("run") as claim:
        assert claim is not None
        claim.expect_held()
        with sqlite3.connect(tmp_path / "store.sqlite") as database:
            database.execute("UPDATE claims SET owner = 'another'")
        database.close()
        assert claim.lost.wait(20)
        with pytest.raises(ClaimLostError, match="taken over"):
            claim.expect_held()


def test_the_folder_is_given_or_named_by_the_environment_or_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STYLESHIFT_STORE", raising=False)
    assert store_folder() == Path("runs")
    monkeypatch.setenv("STYLESHIFT_STORE", "/somewhere")
    assert store_folder() == Path("/somewhere")
    assert store_folder(Path("here")) == Path("here")
