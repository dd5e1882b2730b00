"""One run: what it trains and tests on, and what it does with what an earlier try left."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from styleshift.experiments import running
from styleshift.experiments.materials import Materials, materials_of
from styleshift.experiments.planning import Run, Shift, runs_of
from styleshift.experiments.recipe import Recipe, recipe
from styleshift.experiments.running import finished, split_of
from styleshift.experiments.scales import scale
from styleshift.training.progress import Moment, silent
from styleshift.training.source_data import SourceData
from styleshift.training.variants import shift_row

SHIFTS = [
    Shift(shift_row("none", "layer2")),
    Shift(shift_row("ts", "layer2")),
    Shift(shift_row("ts", "layer2"), clusters=2),
    Shift(shift_row("ts:at=layer4", "layer2")),
]


def run_with(method: str, domain: str, name: str = "pacs-original", scenario: str = "original") -> Run:
    only = [f"method={method}", f"target={domain}", f"scenario={scenario}"]
    (run,) = runs_of(recipe(name), scale("smoke"), only=only)
    return run


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory) -> Materials:
    return materials_of(run_with("mixstyle", "sketch"), tmp_path_factory.mktemp("store"))


def domains_of(materials: Materials, indices: np.ndarray) -> set[str]:
    return {materials.dataset.domain_names[number] for number in materials.dataset.domains[indices]}


def test_the_column_is_the_target(materials: Materials) -> None:
    split = split_of(run_with("mixstyle", "sketch"), materials)
    assert domains_of(materials, split.test) == {"sketch"}
    assert domains_of(materials, split.train) == {"art_painting", "cartoon", "photo"}


def test_with_a_single_source_the_column_is_the_source(materials: Materials) -> None:
    split = split_of(run_with("mixstyle", "sketch", "pacs-single-source"), materials)
    assert domains_of(materials, split.train) == domains_of(materials, split.validation) == {"sketch"}
    assert domains_of(materials, split.test) == {"art_painting", "cartoon", "photo"}


def test_a_scenario_takes_training_images_alone(materials: Materials) -> None:
    whole = split_of(run_with("mixstyle", "sketch"), materials)
    some = split_of(run_with("mixstyle", "sketch", "pacs-imbalanced", "class-imbalanced"), materials)
    assert set(some.train) < set(whole.train)
    assert some.validation.tolist() == whole.validation.tolist()
    assert some.test.tolist() == whole.test.tolist()
    assert materials.dataset.only(some.train).counts().astype(bool).sum(axis=1).tolist() == [3, 2, 2, 0]


def test_the_seed_draws_what_is_taken_away(materials: Materials) -> None:
    run = run_with("mixstyle", "sketch", "pacs-imbalanced", "data-imbalanced")
    other = replace(run, settings=replace(run.settings, seed=1))
    one, same, another = (split_of(each, materials).train.tolist() for each in (run, run, other))
    assert one == same != another


def test_target_images_have_the_datasets_own_labels(materials: Materials) -> None:
    split = split_of(run_with("mixstyle", "sketch"), materials)
    part = running.test_part(materials.dataset, materials.images, split)
    assert part.classes.tolist() == materials.dataset.classes[split.test].tolist()
    assert set(part.domains.tolist()) == {3}


def test_training_is_given_nothing_of_the_target(
    materials: Materials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SourceData] = []
    of = SourceData.of

    def watched(*parts: object) -> SourceData:
        seen.append(of(*parts))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(SourceData, "of", watched)
    run = run_with("mixstyle", "sketch")
    finished(run, materials, tmp_path, SHIFTS[:1], silent)
    target = set(split_of(run, materials).test.tolist())
    assert seen
    assert all(not target & {*data.train.indices.tolist(), *data.validation.indices.tolist()} for data in seen)


def test_a_trained_model_that_was_not_tested_is_only_tested(materials: Materials, tmp_path: Path) -> None:
    run, steps = run_with("mixstyle", "sketch"), list[Moment]()
    first = finished(run, materials, tmp_path, SHIFTS, silent)
    again = finished(run, materials, tmp_path, SHIFTS, steps.append)
    assert steps == []
    assert again.model_dump(exclude={"timing"}) == first.model_dump(exclude={"timing"})
    # the smoke scale's network has three blocks
    assert list(first.shifts) == ["ts:at=layer2", "ts:at=layer2,clusters=2"]
    assert set(first.shifts["ts:at=layer2"].nearest) == {"art_painting", "cartoon", "photo"}
    assert set(first.shifts["ts:at=layer2,clusters=2"].nearest) == {"cluster 1", "cluster 2"}


def test_validation_is_of_the_sources_with_and_without_the_shift(
    small: Recipe, materials: Materials, tmp_path: Path
) -> None:
    (run,) = runs_of(small, scale("smoke"), only=["target=sketch"])
    record = finished(run, materials, tmp_path, SHIFTS[:1], silent)
    assert set(record.validation) == {"none", "ts:at=layer2"}
    # seven classes in three sources, one image of each
    assert all(share * 21 == pytest.approx(round(share * 21)) for share in record.validation.values())
