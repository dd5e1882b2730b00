"""A closer look at a model that a smoke run left."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from styleshift.experiments.store import Store
from styleshift.experiments.table import Table
from styleshift.report import looking
from styleshift.report.contents import asked_of
from styleshift.report.looking import Asked, look_at

pytestmark = pytest.mark.usefixtures("without_tsne")


@pytest.fixture
def asked(smoke_table: Table, smoke_store: Store) -> Asked:
    """The model for target sketch."""
    return next(asked for asked in asked_of(smoke_table, smoke_store) if asked.column == "Sketch")


def share_right(said: list[int], truth: list[int]) -> float:
    return sum(a == b for a, b in zip(said, truth, strict=True)) / len(truth)


def test_it_finds_what_the_record_says(asked: Asked, smoke_store: Store) -> None:
    look = look_at(asked, smoke_store, None)
    answers, shifted = look.answers, asked.record.shifts["ts:at=layer2"]
    assert share_right(answers.before, answers.truth) == pytest.approx(asked.record.accuracy)
    assert share_right(answers.after, answers.truth) == pytest.approx(shifted.accuracy)
    assert sum(answers.far) / len(answers.far) == pytest.approx(shifted.shifted)
    assert look.sources == ["art_painting", "cartoon", "photo"]
    assert len(answers.truth) == asked.record.images == sum(group.of for group in look.gallery)


def test_a_second_look_is_read_and_not_computed(
    asked: Asked, smoke_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = look_at(asked, smoke_store, None)
    monkeypatch.setattr(looking, "_looked", None)
    assert look_at(asked, smoke_store, None) == first


def test_another_alpha_is_another_look(asked: Asked, smoke_store: Store) -> None:
    assert all(look_at(replace(asked, alpha=0.0), smoke_store, None).answers.far)
    assert not any(look_at(replace(asked, alpha=1e9), smoke_store, None).answers.far)


def test_clusters_take_the_place_of_domains(asked: Asked, smoke_store: Store) -> None:
    assert look_at(replace(asked, clusters=2), smoke_store, None).sources == ["cluster 1", "cluster 2"]


def test_it_changes_nothing_that_was_kept(asked: Asked, smoke_store: Store) -> None:
    kept = [*smoke_store.models.rglob("*.safetensors"), *(smoke_store.folder / "records").iterdir()]
    before = {path: path.read_bytes() for path in kept}
    look_at(replace(asked, alpha=1.5), smoke_store, None)
    assert {path: path.read_bytes() for path in kept} == before


@pytest.mark.parametrize(
    ("removed", "said"), [("model.safetensors", "the model is not kept"), ("styles-layer2.safetensors", "not kept")]
)
def test_what_is_missing_is_one_line(asked: Asked, smoke_store: Store, tmp_path: Path, removed: str, said: str) -> None:
    copied = Store(Path(shutil.copytree(smoke_store.folder, tmp_path / "store")))
    shutil.rmtree(copied.folder / "looks", ignore_errors=True)
    (copied.models / asked.folder_name / removed).unlink()
    with pytest.raises(FileNotFoundError, match=said):
        look_at(asked, copied, None)


def test_other_images_than_those_tested_on_are_refused(asked: Asked, smoke_store: Store) -> None:
    other = replace(asked, record=asked.record.model_copy(update={"data": "0" * 64}), alpha=7.0)
    with pytest.raises(ValueError, match="not those that it was tested on"):
        look_at(other, smoke_store, None)
