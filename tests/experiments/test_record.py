"""Records: written, read again, and refused when they are not what they say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from styleshift.experiments.planning import Run
from styleshift.experiments.record import Record, records_in

MakeRecord = Callable[..., Record]


def test_it_comes_back_as_it_was_written(small_runs: list[Run], make_record: MakeRecord) -> None:
    record = make_record(small_runs[0])
    assert Record.of_text(record.text(), "here") == record


def test_times_are_in_the_file_only_where_they_were_measured(small_runs: list[Run], make_record: MakeRecord) -> None:
    plain, timed = (make_record(small_runs[0], costs=costs) for costs in ({}, {"tent": 4.5}))
    assert "costs" not in json.loads(plain.text())
    assert Record.of_text(timed.text(), "here").costs == {"tent": 4.5}


@pytest.mark.parametrize(
    ("field", "value"),
    [("accuracy", 0.99), ("scale", "paper"), ("recipe", "other"), ("epoch", 9), ("shifts", {}), ("sha256", "0" * 64)],
)
def test_one_in_which_anything_was_edited_is_refused(
    small_runs: list[Run], make_record: MakeRecord, field: str, value: object
) -> None:
    values = {**json.loads(make_record(small_runs[0]).text()), field: value}
    with pytest.raises(ValueError, match=r"here was edited: it does not match its checksum\. Restore or remove it"):
        Record.of_text(json.dumps(values), "here")


def test_its_checksum_holds_however_it_is_laid_out(small_runs: list[Run], make_record: MakeRecord) -> None:
    record = make_record(small_runs[0], 0.1 + 0.2)
    assert Record.of_text(json.dumps(json.loads(record.text()), indent=4, sort_keys=True), "here") == record


def test_one_without_a_checksum_is_read(small_runs: list[Run], make_record: MakeRecord) -> None:
    assert Record.of_text(without_checksum(make_record(small_runs[0])), "here") == make_record(small_runs[0])


@pytest.mark.parametrize(
    ("field", "value"), [("method", "dsu"), ("method", "mixstyle+oversampling"), ("domain", "photo"), ("seed", 7)]
)
def test_one_that_says_other_than_its_settings_is_refused(
    small_runs: list[Run], make_record: MakeRecord, field: str, value: object
) -> None:
    edited = without_checksum(make_record(small_runs[0]), **{field: value})
    with pytest.raises(ValueError, match=f"here was edited: its {field}"):
        Record.of_text(edited, "here")


def without_checksum(record: Record, **changed: object) -> str:
    values = {**json.loads(record.text()), **changed}
    del values["sha256"]
    return json.dumps(values)


@pytest.mark.parametrize("field", ["key", "cell", "protocol"])
def test_one_whose_key_is_not_its_settings_hash_is_refused(
    small_runs: list[Run], make_record: MakeRecord, field: str
) -> None:
    edited = make_record(small_runs[0]).model_copy(update={field: "0" * 64})
    with pytest.raises(ValueError, match=r"here\.json was edited"):
        Record.of_text(edited.text(), "here.json")


def test_one_with_edited_settings_is_refused(small_runs: list[Run], make_record: MakeRecord) -> None:
    values = json.loads(without_checksum(make_record(small_runs[0])))
    values["facts"]["training"]["epochs"] = 80
    with pytest.raises(ValueError, match="was edited"):
        Record.of_text(json.dumps(values), "here.json")


def test_one_that_is_cut_short_is_refused(small_runs: list[Run], make_record: MakeRecord) -> None:
    with pytest.raises(ValueError, match=r"here\.json is no record of a run"):
        Record.of_text(make_record(small_runs[0]).text()[:200], "here.json")


def test_it_says_which_field_is_missing(small_runs: list[Run], make_record: MakeRecord) -> None:
    values = json.loads(make_record(small_runs[0]).text())
    del values["accuracy"]
    with pytest.raises(ValueError, match="accuracy: Field required"):
        Record.of_text(json.dumps(values), "here.json")


def test_it_gives_an_accuracy_by_the_shifts_name(small_runs: list[Run], make_record: MakeRecord) -> None:
    record = make_record(small_runs[0], 0.25, shifts={"ts:at=layer2": 0.75})
    assert record.accuracy_of("none") == 0.25
    assert record.accuracy_of("ts:at=layer2") == 0.75
    assert record.accuracy_of("ts:at=layer3") is None


def test_it_reads_a_folder_and_those_below_it(small_runs: list[Run], make_record: MakeRecord, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for run, folder in zip(small_runs, (tmp_path, tmp_path / "below"), strict=False):
        (folder / f"{run.domain}.json").write_text(make_record(run).text())
    assert {record.domain for record in records_in(tmp_path).values()} == {"art_painting", "sketch"}


def test_it_passes_over_json_that_is_no_record(small_runs: list[Run], make_record: MakeRecord, tmp_path: Path) -> None:
    (tmp_path / "layers.json").write_text('{"command": "scripts/bench layers"}')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "run.json").write_text(make_record(small_runs[0]).text())
    assert list(records_in(tmp_path)) == [tmp_path / "run.json"]


def test_it_passes_over_what_is_not_utf_8(small_runs: list[Run], make_record: MakeRecord, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_bytes('{"title": "Übersicht"}'.encode("latin-1"))
    (tmp_path / "run.json").write_text(make_record(small_runs[0]).text())
    assert list(records_in(tmp_path)) == [tmp_path / "run.json"]


def test_a_record_that_is_not_utf_8_any_more_is_refused(
    small_runs: list[Run], make_record: MakeRecord, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_bytes(make_record(small_runs[0]).text().encode() + b"\xff")
    with pytest.raises(ValueError, match=r"run\.json is no record of a run: it is not UTF-8"):
        records_in(tmp_path)


@pytest.mark.parametrize("length", [0, 200])
def test_it_refuses_a_file_that_was_cut_short(
    small_runs: list[Run], make_record: MakeRecord, tmp_path: Path, length: int
) -> None:
    (tmp_path / "run.json").write_text(make_record(small_runs[0]).text()[:length])
    with pytest.raises(ValueError, match=r"run\.json is no record of a run"):
        records_in(tmp_path)


def test_it_names_a_near_folder_for_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no folder .*/result to read records from; did you mean results"):
        records_in(tmp_path / "result")


def test_a_result_on_streams_is_none_though_it_says_its_models_key(tmp_path: Path) -> None:
    (tmp_path / "streams-a.json").write_text(json.dumps({"key": "0" * 64, "model": "a", "played": []}))
    assert records_in(tmp_path) == {}
