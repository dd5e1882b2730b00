"""One run, from its settings to its record."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import styleshift
from styleshift.data.transforms import transform
from styleshift.experiments import running
from styleshift.experiments.materials import Materials, materials_of
from styleshift.experiments.planning import Run, runs_of, shifts_of
from styleshift.experiments.recipe import Recipe
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.training.progress import silent
from styleshift.training.trained import Trained


@pytest.fixture(scope="module")
def run() -> Run:
    """A training of the smoke scale for target sketch, and what it works on."""
    columns = [{"name": "Sketch", "domain": "sketch"}]
    rows = [{"method": "mixstyle"}, {"method": "mixstyle", "shift": "ts"}]
    values = {"name": "small", "title": "small", "paper": "small", "dataset": "pacs", "columns": columns, "rows": rows}
    return runs_of(Recipe.model_validate(values), scale("smoke"), [0])[0]


@pytest.fixture(scope="module")
def materials(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Materials:
    return materials_of(run, tmp_path_factory.mktemp("materials"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def record(run: Run, materials: Materials, folder: Path) -> Record:
    columns = [{"name": "Sketch", "domain": "sketch"}]
    rows = [{"method": "mixstyle", "shift": shift} for shift in ("none", "ts", "ts:alpha=0", "ts:at=layer4")]
    values = {"name": "small", "title": "small", "paper": "small", "dataset": "pacs", "columns": columns, "rows": rows}
    shifts = shifts_of(Recipe.model_validate(values), running.LAYERS)
    return running.finished(run, materials, folder, shifts, silent)


def test_a_record_tells_what_the_saved_model_does(run: Run, materials: Materials, folder: Path, record: Record) -> None:
    trained = Trained.read(folder)
    assert trained is not None
    model = trained.model(folder)
    robust = styleshift.load(model, folder / "styles-layer2.safetensors")
    part = running.test_part(materials.dataset, materials.images, running.split_of(run, materials))
    (batch,) = part.test_batches(transform(run.settings.transform), len(part))
    with torch.inference_mode():
        plain = model(batch.images).argmax(1) == batch.classes
        shifted = robust(batch.images).argmax(1) == batch.classes
    assert record.accuracy == pytest.approx(float(plain.double().mean()))
    assert record.accuracy_of("ts:at=layer2") == pytest.approx(float(shifted.double().mean()))
    far = robust.explain(batch.images).far
    assert record.shifts["ts:at=layer2"].shifted == pytest.approx(float(far.double().mean()))


def test_it_leaves_out_shifts_at_layers_that_the_network_lacks(record: Record) -> None:
    assert "ts:at=layer2,alpha=0" in record.shifts
    assert not [name for name in record.shifts if "layer4" in name]


def test_saved_styles_say_how_images_were_prepared(folder: Path, record: Record) -> None:
    trained = Trained.read(folder)
    assert trained is not None
    robust = styleshift.load(trained.model(folder), folder / "styles-layer1.safetensors")
    assert robust.origin.preprocessing == {"transform": "light"}
    assert robust.sources.domains == ("art_painting", "cartoon", "photo")


def test_a_trained_model_is_tested_without_training_again(
    run: Run, materials: Materials, folder: Path, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "model.safetensors").read_bytes()
    again = running.finished(run, materials, folder, [running.UNSHIFTED], silent)
    assert (again.accuracy, again.shifts) == (record.accuracy, {})
    assert (folder / "model.safetensors").read_bytes() == before


def test_leaving_one_domain_out_tests_on_all_of_it(run: Run, materials: Materials) -> None:
    split = running.split_of(run, materials)
    sketch = materials.dataset.domain_names.index("sketch")
    assert split.test.tolist() == np.flatnonzero(materials.dataset.domains == sketch).tolist()
    assert sketch not in materials.dataset.domains[split.train]


def test_a_single_source_is_tested_on_all_others(run: Run, materials: Materials) -> None:
    split = running.split_of(replace(run, protocol="single-source"), materials)
    sketch = materials.dataset.domain_names.index("sketch")
    assert set(materials.dataset.domains[split.train].tolist()) == {sketch}
    assert set(materials.dataset.domains[split.test].tolist()) == {0, 1, 2, 3} - {sketch}


def test_a_scenario_takes_away_training_images_alone(run: Run, materials: Materials) -> None:
    whole = running.split_of(run, materials)
    less = running.split_of(replace(run, scenario="class-imbalanced:3/2/2"), materials)
    assert set(less.train.tolist()) < set(whole.train.tolist())
    assert less.validation.tolist() == whole.validation.tolist()
    assert less.test.tolist() == whole.test.tolist()
