"""One run: the training, every way of testing it, and the record of all that (paper Sec. 5).

What a killed run left in its folder is gone on from: a checkpoint, or a trained model that was not tested yet.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch
from torch import nn

from styleshift.data.cache import Decoded
from styleshift.data.domains import Domains
from styleshift.data.imbalance import save_indices
from styleshift.data.protocols import Split
from styleshift.data.transforms import transform
from styleshift.experiments.materials import Materials, split_in
from styleshift.experiments.planning import LAYERS as LAYERS
from styleshift.experiments.planning import UNSHIFTED, Run, Shift
from styleshift.experiments.provenance import commit, versions
from styleshift.experiments.record import Record, Tested, Timing
from styleshift.shifted import Origin, ShiftedModel, fingerprint
from styleshift.sources import SourceStyles
from styleshift.training.adapted_rows import AdaptedRow
from styleshift.training.evaluate import Evaluation, RowResult, evaluate
from styleshift.training.fit import train
from styleshift.training.online import inference_times, online_result
from styleshift.training.progress import ShowProgress
from styleshift.training.settings import Settings
from styleshift.training.source_data import Part, SourceData
from styleshift.training.source_styles import source_styles
from styleshift.training.trained import Trained

log = logging.getLogger(__name__)

CHOICE = "train.index"  # beside the model: which images were trained on, where a scenario took some away


def finished(run: Run, materials: Materials, folder: Path, shifts: Sequence[Shift], progress: ShowProgress) -> Record:
    """Train and test `run`.

    folder: keeps the model and the sources' styles, and the checkpoint until then; and `CHOICE`.
    shifts: ways to test it; those at layers that the network does not have are left out.
    """
    run = run.starting_from(materials.weights_sha256)
    split = split_of(run, materials)
    if run.scenario != "original":
        _keep_choice(run, materials.dataset, split, folder)
    model = train(
        run.settings, materials.dataset, materials.images, split, folder, weights=materials.weights, progress=progress
    )
    trained = Trained.read(folder)
    assert trained is not None
    data = SourceData.of(materials.dataset, materials.images, split)
    # measured by domain labels, whatever the training had: clusters are made of them where they are asked for
    labelled = replace(run.settings, pseudo_domains=None)
    layers = [layer for layer in LAYERS if layer in dict(model.named_children())]
    styles = source_styles(model, labelled, data, transform(run.settings.transform), layers)
    for style in styles.values():
        keep_styles(model, style, run.settings, folder)
    tests = _Tests(model, run, styles)
    part = test_part(materials.dataset, materials.images, split)
    tested = tests.of(part, shifts)
    record = _record(run, materials, trained, split, tested, _validated(tests, data))
    return record.model_copy(update={"costs": tests.times(part, shifts)})


def keep_styles(model: nn.Module, styles: SourceStyles, settings: Settings, folder: Path) -> None:
    """Write `model`, fitted to its sources, beside its weights: `styleshift.load` reads it."""
    origin = Origin(fingerprint(model), channels=3, preprocessing={"transform": settings.transform})
    ShiftedModel(model, styles, origin=origin).save(folder / f"styles-{styles.at}.safetensors")


def _keep_choice(run: Run, dataset: Domains, split: Split, folder: Path) -> None:
    """Write which images the scenario left to train on, and show how many there are of each class and domain."""
    save_indices(folder / CHOICE, dataset, split.train, f"{run.scenario}, {run.split}, {run.domain}, seed {run.seed}")
    log.info("trained on, %s:\n%s", run.scenario, dataset.only(split.train).table())


def split_of(run: Run, materials: Materials) -> Split:
    """Which images train, validate and test."""
    return split_in(run, materials.dataset)


def test_part(dataset: Domains, images: Decoded, split: Split) -> Part:
    """The images to test on."""
    classes, domains = (torch.from_numpy(labels[split.test]) for labels in (dataset.classes, dataset.domains))
    return Part(images, split.test, classes, domains)


@dataclass(frozen=True)
class _Tests:
    """A trained model and all it can be shifted to."""

    model: nn.Module
    run: Run
    styles: Mapping[str, SourceStyles]

    def of(self, part: Part, shifts: Sequence[Shift]) -> Evaluation:
        """The images of `part` tested in every way, one pass for each kind of sources."""
        possible = self._possible(shifts)
        shifted = [shift for shift in possible if shift.adapted is None]
        kinds = dict.fromkeys(shift.clusters for shift in shifted)
        passes = [self._pass(part, kind, [shift for shift in shifted if shift.clusters == kind]) for kind in kinds]
        rows = {name: result for each in passes for name, result in each.rows.items()}
        began = time.monotonic()
        rows |= {shift.name: self._online(part, shift.adapted, shift.clusters) for shift in possible if shift.adapted}
        seconds = time.monotonic() - began
        return Evaluation(rows, passes[0].images, sum(each.seconds for each in passes) + seconds)

    def times(self, part: Part, shifts: Sequence[Shift]) -> dict[str, float]:
        """Milliseconds an image, of the ways whose time was asked for."""
        timed = [shift for shift in self._possible(shifts) if shift.timed]
        if not timed:
            return {}
        settings = self.run.settings
        layers = dict.fromkeys(shift.row.at for shift in timed if shift.row.at is not None)
        sources = {layer: self._sources(layer, timed[0].clusters) for layer in layers}
        rows = [(shift.name, shift.adapted or shift.row) for shift in timed]
        how = transform(settings.transform)
        return inference_times(rows, self.model, part, how, sources, precision=settings.precision)

    def _possible(self, shifts: Sequence[Shift]) -> list[Shift]:
        return [shift for shift in shifts if shift.row.at is None or shift.row.at in self.styles]

    def _online(self, part: Part, row: AdaptedRow, clusters: int | None) -> RowResult:
        settings, how = self.run.settings, transform(self.run.settings.transform)
        sources = {} if row.layer is None else {row.layer: self._sources(row.layer, clusters)}
        return online_result(row, self.model, part, how, sources, precision=settings.precision, seed=self.run.seed)

    def _pass(self, part: Part, clusters: int | None, shifts: Sequence[Shift]) -> Evaluation:
        settings = self.run.settings
        layers = dict.fromkeys(shift.row.at for shift in shifts if shift.row.at is not None)
        sources = {layer: self._sources(layer, clusters) for layer in layers}
        rows = [replace(shift.row, name=shift.name) for shift in shifts]
        batches = part.test_batches(transform(settings.transform), settings.batch_size)
        return evaluate(self.model, batches, sources, rows, precision=settings.precision, seed=self.run.seed)

    def _sources(self, layer: str, clusters: int | None) -> SourceStyles:
        styles = self.styles[layer]
        return styles if clusters is None else styles.clustered(clusters, self.run.seed)


def _validated(tests: _Tests, data: SourceData) -> dict[str, float]:
    if len(data.validation) == 0:
        return {}
    shift = Shift(replace(UNSHIFTED.row, at=tests.run.shift_at))
    rows = tests.of(data.validation, [UNSHIFTED, shift]).rows
    return {name: result.metrics.accuracy for name, result in rows.items()}


def _record(
    run: Run, materials: Materials, trained: Trained, split: Split, tests: Evaluation, validation: dict[str, float]
) -> Record:
    dataset, weights = materials.dataset, materials.weights_sha256
    tested = {name: _tested(result, dataset.class_names, dataset.domain_names) for name, result in tests.rows.items()}
    plain = tested.pop(UNSHIFTED.name)
    return Record(
        key=run.key(*materials.content),
        cell=run.cell,
        protocol=run.comparable,
        recipe=run.recipe,
        scale=run.scale.name,
        dataset=run.dataset,
        method=run.method,
        domain=run.domain,
        target=[dataset.domain_names[number] for number in split.targets],
        seed=run.seed,
        images=tests.images,
        **plain.model_dump(exclude={"shifted", "nearest"}),
        shifts=tested,
        validation=validation,
        final_loss=trained.history[-1].loss,
        epoch=trained.epoch,
        timing=Timing(
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            training=round(trained.seconds, 1),
            evaluation=round(tests.seconds, 1),
            images_per_second=round(trained.images / max(trained.seconds, 1e-9), 1),
        ),
        facts=run.facts,
        threads=trained.settings.threads,
        weights=weights,
        data=materials.images.key,
        versions=versions(),
        commit=commit(),
    )


def _tested(result: RowResult, class_names: Sequence[str], domain_names: Sequence[str]) -> Tested:
    metrics = result.metrics
    return Tested(
        accuracy=metrics.accuracy,
        macro_f1=metrics.macro_f1,
        worst_domain=metrics.worst_domain,
        calibration_error=metrics.calibration_error,
        per_class=dict(zip(class_names, metrics.per_class, strict=True)),
        per_domain={domain_names[number]: share for number, share in metrics.per_domain.items()},
        shifted=result.shifted,
        nearest=result.nearest,
    )
