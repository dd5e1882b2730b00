"""A few hundred images of the real PACS through the whole lab: decoded, trained, shifted in every way, recorded."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from styleshift.data.cache import decoded
from styleshift.data.catalog.pacs import PACS
from styleshift.data.domains import Domains
from styleshift.experiments.materials import Materials
from styleshift.experiments.planning import Run, Shift, run_of
from styleshift.experiments.recipe import recipe
from styleshift.experiments.record import Record
from styleshift.experiments.running import finished
from styleshift.experiments.scales import scale
from styleshift.training.progress import silent
from styleshift.training.variants import shift_row

EACH = 9  # images of every class in every domain
SHIFTS = [Shift(shift_row(name, "layer2")) for name in ("none", "ts", "ts:alpha=0", "ts:all", "ts:at=layer1")]


def some_of(pacs: Domains) -> Domains:
    """The first images of every class and domain that the published lists train on."""
    assert pacs.lists is not None
    trained = np.flatnonzero(pacs.lists[:, 0] == 1)
    kinds = pacs.domains[trained] * len(pacs.class_names) + pacs.classes[trained]
    return pacs.only(np.concatenate([trained[kinds == kind][:EACH] for kind in np.unique(kinds)]))


def short(run: Run) -> Run:
    """The cpu scale's training, cut to a few steps; float32, which every machine can do."""
    changes = {"epochs": 2, "batch_size": 27, "learning_rate": 0.01, "clip": None, "precision": "float32"}
    return replace(run, settings=replace(run.settings, **changes))


def record_of(run: Run, root: Path, folder: Path, shifts: Sequence[Shift]) -> Record:
    images = some_of(PACS().load(root))
    weights = root.parent / "weights" / "resnet18_imagenet.safetensors"
    if not weights.is_file():
        pytest.skip(f"no weights at {weights}: this test starts from ImageNet's")
    materials = Materials(images, decoded(images, 128, folder), weights)
    return finished(run, materials, folder / "model", shifts, silent)


@pytest.mark.pacs
def test_real_images_are_learned_from_and_recorded(pacs_root: Path, tmp_path: Path) -> None:
    asked = recipe("pacs-original")
    row = next(row for row in asked.rows if row.method == "mixstyle+sb")
    column = next(column for column in asked.columns if column.domain == "photo")
    before = torch.get_num_threads()
    run = short(run_of(asked, scale("cpu"), row, column, seed=0))
    record = record_of(run, pacs_root, tmp_path, SHIFTS)
    assert torch.get_num_threads() == before
    assert (record.target, record.images, record.method) == (["photo"], 7 * EACH, "mixstyle+sb")
    # a guess is right in a seventh
    assert record.accuracy > 0.5
    assert record.final_loss < 1.7
    assert list(record.shifts) == [shift.name for shift in SHIFTS[1:]]
    assert record.shifts["ts:at=layer2,all"].shifted == 1
    assert record.shifts["ts:at=layer2"].shifted <= record.shifts["ts:at=layer2,alpha=0"].shifted
    assert sum(record.shifts["ts:at=layer2"].nearest.values()) == pytest.approx(1)
    assert set(record.shifts["ts:at=layer2"].nearest) == {"art_painting", "cartoon", "sketch"}
    assert Record.of_text(record.text(), "here") == record
