"""A grid of runs: done once, gone on with, left to others."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from styleshift.data.imbalance import load_indices
from styleshift.experiments import runner, running
from styleshift.experiments.materials import materials_of
from styleshift.experiments.planning import runs_of
from styleshift.experiments.recipe import Recipe, Row
from styleshift.experiments.record import Record
from styleshift.experiments.runner import Grid, Outcome
from styleshift.experiments.scales import scale
from styleshift.experiments.store import Store
from styleshift.training.progress import Moment, ShowProgress, silent

SMOKE = scale("smoke")


@contextmanager
def quiet(title: str) -> Iterator[ShowProgress]:
    yield silent


@contextmanager
def interrupting(title: str) -> Iterator[ShowProgress]:
    def show(moment: Moment) -> None:
        raise KeyboardInterrupt

    yield show


def grid(recipe: Recipe, folder: Path, progress: Callable[[str], object] = quiet) -> Grid:
    return Grid(recipe, runs_of(recipe, SMOKE, [0], ["target=sketch"]), Store(folder), progress)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A store in which one training was done, and what was said of it."""
    folder = tmp_path_factory.mktemp("store")
    return folder, grid(_small(), folder).run()


def _small() -> Recipe:
    columns = [{"name": "Sketch", "domain": "sketch"}]
    rows = [{"method": "mixstyle"}, {"method": "mixstyle", "shift": "ts"}]
    values = {"name": "small", "title": "small", "paper": "small", "dataset": "pacs", "columns": columns, "rows": rows}
    return Recipe.model_validate(values)


def test_it_does_what_is_to_do(done: tuple[Path, Outcome]) -> None:
    folder, outcome = done
    assert outcome == Outcome(finished=1, done_before=0, elsewhere=0)
    (record,) = Store(folder).records()
    assert (record.method, record.domain, record.seed, record.images) == ("mixstyle", "sketch", 0, 21)
    assert set(record.validation) == {"none", "ts:at=layer2"}
    assert {"ts:at=layer1,alpha=0", "ts:at=layer3", "ts:at=layer2,all", "ts:at=layer2,clusters=3"} <= set(record.shifts)


def test_an_accuracy_is_a_share_of_whole_images(done: tuple[Path, Outcome]) -> None:
    (record,) = Store(done[0]).records()
    assert (record.accuracy * 21) == pytest.approx(round(record.accuracy * 21))
    assert record.per_domain == {"sketch": record.accuracy}


def test_it_keeps_the_model_and_its_styles_and_no_checkpoint(done: tuple[Path, Outcome]) -> None:
    (folder,) = (done[0] / "models").iterdir()
    assert {path.name for path in folder.glob("*.safetensors")} == {
        "model.safetensors",
        "styles-layer1.safetensors",
        "styles-layer2.safetensors",
        "styles-layer3.safetensors",
    }


def test_it_keeps_and_shows_which_images_a_scenario_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    imbalanced = _small().model_copy(update={"scenario": "class-imbalanced:3/2/2"})
    runs = grid(imbalanced, tmp_path)
    with caplog.at_level(logging.INFO):
        runs.run()
    (folder,) = (tmp_path / "models").iterdir()
    materials = materials_of(runs.runs[0], tmp_path)
    kept = load_indices(folder / "train.index", materials.dataset)
    assert kept.tolist() == running.split_of(runs.runs[0], materials).train.tolist()
    table = materials.dataset.only(kept).table()
    assert f"trained on, class-imbalanced:3/2/2:\n{table}" in caplog.text


def test_it_keeps_no_list_where_no_image_was_taken_away(done: tuple[Path, Outcome]) -> None:
    assert not list(done[0].rglob("train.index"))


def test_it_runs_nothing_twice(done: tuple[Path, Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "train", None)
    assert grid(_small(), done[0]).run() == Outcome(finished=0, done_before=1, elsewhere=0)


def test_a_new_shift_tests_the_model_again_without_training(done: tuple[Path, Outcome]) -> None:
    recipe = _small()
    further = recipe.rows[0].model_copy(update={"shift": "ts:partial=0.5"})
    assert grid(recipe.model_copy(update={"rows": [further]}), done[0], interrupting).run().finished == 1
    assert Store(done[0]).records()[0].accuracy_of("ts:at=layer2,partial=0.5") is not None


def test_what_a_record_from_elsewhere_tested_is_no_test_of_a_model_trained_here(
    done: tuple[Path, Outcome], tmp_path: Path
) -> None:
    theirs = Store(done[0]).records()[0]
    other = {name: tested for name, tested in theirs.shifts.items() if name != "ts:at=layer2"}
    record = theirs.model_copy(update={"shifts": {**other, "theirs": theirs.shifts["ts:at=layer2"]}})
    Store(tmp_path).add(record, "from elsewhere")
    assert grid(_small(), tmp_path).run() == Outcome(finished=1, done_before=0, elsewhere=0)
    (ours,) = Store(tmp_path).records()
    assert ours.accuracy_of("ts:at=layer2") is not None
    assert ours.accuracy_of("theirs") is None
    assert grid(_small(), tmp_path).run() == Outcome(finished=0, done_before=1, elsewhere=0)


def test_it_leaves_what_another_process_works_on(done: tuple[Path, Outcome], tmp_path: Path) -> None:
    key = Store(done[0]).records()[0].key
    with Store(tmp_path).claimed(key):
        assert grid(_small(), tmp_path).run() == Outcome(finished=0, done_before=0, elsewhere=1)


def test_an_interrupted_run_is_free_for_the_next(done: tuple[Path, Outcome], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        grid(_small(), tmp_path, interrupting).run()
    assert Store(tmp_path).living_claims() == set()
    assert Store(tmp_path).records() == []
    assert grid(_small(), tmp_path).run().finished == 1
    again, before = Store(tmp_path).records()[0], Store(done[0]).records()[0]
    assert (again.key, again.accuracy, again.final_loss) == (before.key, before.accuracy, before.final_loss)


def test_a_result_from_other_images_or_weights_leaves_a_run_to_do(done: tuple[Path, Outcome], tmp_path: Path) -> None:
    runs = grid(_small(), tmp_path)
    record = Store(done[0]).records()[0]
    for data, weights in ((record.data, "w" * 64), ("d" * 64, None)):
        key = runs.runs[0].key(data, weights)
        runs.store.add(record.model_copy(update={"key": key, "data": data, "weights": weights}), key)
    assert runs.pending() == list(runs.runs)
    runs.store.add(record, "the same")
    assert runs.pending() == []


def test_where_the_images_are_not_here_a_result_from_any_will_do(
    done: tuple[Path, Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "content_of", lambda *_: None)
    runs = grid(_small(), tmp_path)
    record = Store(done[0]).records()[0]
    key = runs.runs[0].key("d" * 64, None)
    runs.store.add(record.model_copy(update={"key": key, "data": "d" * 64}), key)
    assert (runs.content, runs.pending()) == (None, [])


def test_it_guesses_from_the_scale_before_anything_is_measured(small: Recipe, tmp_path: Path) -> None:
    assert grid(small, tmp_path).seconds_left() == pytest.approx(SMOKE.minutes * 60)


def test_it_guesses_from_what_such_runs_took(small: Recipe, tmp_path: Path, make_record: Callable[..., Record]) -> None:
    store = Store(tmp_path)
    store.add(make_record(runs_of(small, SMOKE, [7])[0]), "measured")  # 200 s of training, 40 s of tests
    assert grid(small, tmp_path).seconds_left() == pytest.approx(240)


def test_an_outcome_speaks_of_other_processes_only_where_there_are(small: Recipe) -> None:
    assert str(Outcome(1, 2, 0)) == "1 finished, 2 done before"
    assert str(Outcome(1, 2, 3)) == "1 finished, 2 done before, 3 left to other processes"


def test_a_recipe_that_asks_for_test_time_methods_tests_the_trained_model_again_and_loses_nothing(
    done: tuple[Path, Outcome],
) -> None:
    folder, _ = done
    (before,) = Store(folder).records()
    rows = [Row(method="mixstyle", shift=shift) for shift in ("tent", "t3a:filter=1", "ts+tent", "ts")]
    asked = _small().model_copy(update={"rows": rows, "timed": True})
    assert grid(asked, folder).run().finished == 1
    (after,) = Store(folder).records()
    added = {"tent", "t3a:filter=1", "ts:at=layer2,alpha=3+tent"}
    assert set(after.shifts) == set(before.shifts) | added
    assert {name: after.shifts[name] for name in before.shifts} == before.shifts
    assert set(after.costs) == {*added, "ts:at=layer2"}
    assert (after.key, after.accuracy, after.facts) == (before.key, before.accuracy, before.facts)
    assert after.timing.training == before.timing.training
    for again in (asked, _small()):
        assert grid(again, folder).run().done_before == 1
