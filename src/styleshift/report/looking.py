"""A closer look at one trained model: what its record does not hold, counted anew from the kept model and the images.

    look_at    every test image before and after the shift, its score and nearest source, and Phi in two dimensions
    Look       all that as plain values, kept beside the store so that a second report is quick

Nothing here changes a run: models, records and their keys are read only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from pydantic import TypeAdapter
from torch import Tensor, nn

from styleshift.attaching import features_at
from styleshift.data.decoding import Progress
from styleshift.data.transforms import transform
from styleshift.experiments.keys import hash_of
from styleshift.experiments.materials import Materials, images_of
from styleshift.experiments.planning import Run
from styleshift.experiments.record import Record
from styleshift.experiments.running import split_of, test_part
from styleshift.experiments.store import Store
from styleshift.report.before_after import BeforeAfter, before_and_after
from styleshift.report.extras import has_tsne
from styleshift.report.gallery import Group, Picture, Said, grouped, thumbnail
from styleshift.report.style_map import Spotted, StyleMap, mapped, which_tested
from styleshift.shifted import ShiftedModel, load
from styleshift.style.statistics import style_of
from styleshift.training.evaluate import autocast
from styleshift.training.settings import Settings
from styleshift.training.source_data import Part
from styleshift.training.trained import Trained
from styleshift.writing import atomically

_VERSION = 1  # of what is kept; what an older one left is made anew


@dataclass(frozen=True)
class Asked:
    """Which model is looked at, and how it is shifted.

    column: the table's word for the target. alpha, clusters: the recipe's.
    """

    run: Run
    record: Record
    column: str
    alpha: float
    clusters: int | None

    @property
    def folder_name(self) -> str:
        """Of its model, below the store's models."""
        return self.run.folder_name(self.record.key)


@dataclass(frozen=True)
class Answers:
    """What the model said of every test image, one entry an image; classes and sources by number.

    score: in spreads; None where it is beyond all numbers (one source).
    """

    truth: list[int]
    before: list[int]
    before_confidence: list[float]
    after: list[int]
    after_confidence: list[float]
    score: list[float | None]
    far: list[bool]
    nearest: list[int]


@dataclass(frozen=True)
class Look:
    """class_names: of the head. sources: domains, or clusters, that images are shifted to. gallery: some images."""

    class_names: list[str]
    sources: list[str]
    alpha: float
    at: str
    answers: Answers
    style_map: StyleMap
    gallery: list[Group]


_LOOK = TypeAdapter(Look)


def look_at(asked: Asked, store: Store, data: Path | None, progress: Progress | None = None) -> Look:
    """The look asked for; from beside the store, if it was made before.

    FileNotFoundError, KeyError or ValueError, in one line, where the model or its images are not there.
    """
    about = {"version": _VERSION, "key": asked.record.key, "at": asked.run.shift_at, "tsne": has_tsne()}
    name = hash_of({**about, "alpha": asked.alpha, "clusters": asked.clusters})[:12]
    path = store.folder / "looks" / f"{asked.folder_name}-{name}.json"
    if path.is_file():
        return _LOOK.validate_json(path.read_bytes())
    look = _looked(asked, store, data, progress)
    with atomically(path) as draft:
        draft.write_bytes(_LOOK.dump_json(look))
    return look


def _looked(asked: Asked, store: Store, data: Path | None, progress: Progress | None) -> Look:
    trained = Trained.read(store.models / asked.folder_name)
    if trained is None:
        raise FileNotFoundError(f"the model is not kept in this store (models/{asked.folder_name})")
    materials = Materials(*images_of(asked.run, store.folder, data), weights=None)
    if materials.images.key != asked.record.data:
        raise ValueError("the images found are not those that it was tested on")
    subject = _subject(asked, trained, store.models / asked.folder_name, materials)
    answers = subject.answers(progress)
    sources = [str(name) for name in subject.robust.sources.domains]
    return Look(
        class_names=list(trained.class_names),
        sources=sources,
        alpha=subject.robust.alpha,
        at=subject.robust.sources.at,
        answers=answers,
        style_map=subject.style_map(answers),
        gallery=_gallery(subject, answers, trained.class_names, sources),
    )


@dataclass(frozen=True)
class _Subject:
    """A trained model, as it is and shifting, with the images to test on; files: their names."""

    model: nn.Module
    robust: ShiftedModel
    settings: Settings
    part: Part
    files: Sequence[str]

    def answers(self, progress: Progress | None) -> Answers:
        """What is said of every test image."""
        found = Answers([], [], [], [], [], [], [], [])
        for batch in self.part.test_batches(transform(self.settings.transform), self.settings.batch_size):
            with autocast(self.settings.precision):
                _add(found, before_and_after(self.model, self.robust, batch.images), batch.classes)
            if progress:
                progress(len(found.truth), len(self.part))
        return found

    def style_map(self, answers: Answers) -> StyleMap:
        """Of some test images, and of the sources' sample."""
        rows = which_tested(len(self.files))
        tested = [Spotted(self.files[row], answers.score[row], answers.far[row], answers.nearest[row]) for row in rows]
        return mapped(self.robust.sources, self._phi(rows), tested)

    @torch.no_grad()
    def _phi(self, rows: Sequence[int]) -> Tensor:
        at = self.robust.sources.at
        images = transform(self.settings.transform).test(self.part.images.take(self.part.indices[list(rows)]))
        with autocast(self.settings.precision):
            features = features_at(self.model, [at], images)[at]
        return style_of(features).phi


def _subject(asked: Asked, trained: Trained, folder: Path, materials: Materials) -> _Subject:
    """The kept model, fitted as its recipe asks, and the images that it was tested on."""
    at = asked.run.shift_at
    styles = folder / f"styles-{at}.safetensors"
    if not styles.is_file():
        raise FileNotFoundError(f"the sources' styles after {at} are not kept with the model")
    model = trained.model(folder)
    kept = load(model, styles)
    sources = kept.sources if asked.clusters is None else kept.sources.clustered(asked.clusters, asked.run.seed)
    robust = ShiftedModel(model, sources, asked.alpha, origin=kept.origin)
    split = split_of(asked.run, materials)
    files = [materials.dataset.files[index] for index in split.test]
    return _Subject(model, robust, asked.run.settings, test_part(materials.dataset, materials.images, split), files)


def _add(found: Answers, said: BeforeAfter, classes: Tensor) -> None:
    found.truth.extend(classes.tolist())
    found.before.extend(said.before.classes.tolist())
    found.before_confidence.extend(_rounded(said.before.confidence))
    found.after.extend(said.after.classes.tolist())
    found.after_confidence.extend(_rounded(said.after.confidence))
    found.score.extend(value if math.isfinite(value) else None for value in _rounded(said.seen.score))
    found.far.extend(said.seen.far.tolist())
    found.nearest.extend(said.seen.nearest.tolist())


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def _gallery(subject: _Subject, answers: Answers, classes: Sequence[str], sources: Sequence[str]) -> list[Group]:
    def picture(row: int) -> Picture:
        pixels = subject.part.images.take(subject.part.indices[[row]])[0].permute(1, 2, 0).numpy()
        return Picture(
            name=subject.files[row],
            image=thumbnail(Image.fromarray(pixels)),
            truth=classes[answers.truth[row]],
            before=classes[answers.before[row]],
            before_confidence=answers.before_confidence[row],
            after=classes[answers.after[row]],
            after_confidence=answers.after_confidence[row],
            score=answers.score[row],
            far=answers.far[row],
            nearest=sources[answers.nearest[row]],
        )

    said = [
        Said(classes[truth], classes[before], classes[after], far)
        for truth, before, after, far in zip(answers.truth, answers.before, answers.after, answers.far, strict=True)
    ]
    return grouped(said, picture)
