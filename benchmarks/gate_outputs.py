"""What stored models say of held-out source images and of the target, plain and shifted in every way that is compared.

    outputs     of one model: everything that `benchmarks.gate` needs, from its file where it was made before
    WAYS        how a sample can be shifted: after the stem and which residual blocks, and how far

Each image is shifted in every way, whether far or not; which ones a gate lets through is decided afterwards.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from styleshift.calibrating import Reading, Styles, Wish, calibration_of, gate_of, measured
from styleshift.data.cache import decoded
from styleshift.data.protocols import leave_one_domain_out
from styleshift.data.roots import dataset
from styleshift.experiments.running import test_part
from styleshift.layer_choice import HeldImages, Trial, ways_to_try
from styleshift.sources import SourceStyles
from styleshift.style.shifting import Variant, shifted_as
from styleshift.style.statistics import style_of
from styleshift.training.evaluate import autocast
from styleshift.training.settings import Settings
from styleshift.training.source_data import Part, SourceData, transform_of
from styleshift.training.trained import Trained
from styleshift.writing import atomically

POINTS = ("maxpool", "layer1", "layer2", "layer3")
# name -> the share of the way at each point where the sample is shifted; "chosen" is added: what at="auto" chose
WAYS: dict[str, dict[str, float]] = {
    "plain": {},
    "layer1": {"layer1": 1.0},
    "layer2": {"layer2": 1.0},
    "layer2 x 0.6": {"layer2": 0.6},
    "layer1, layer2 x 0.7": {"layer1": 0.7, "layer2": 0.7},
    "maxpool, layer1, layer2 x 0.5": {"maxpool": 0.5, "layer1": 0.5, "layer2": 0.5},
    "maxpool, layer1, layer2 x 0.7": {"maxpool": 0.7, "layer1": 0.7, "layer2": 0.7},
}
Outputs = dict[str, NDArray[Any]]


def outputs(folder: Path, work: Path, thin: int = 1, data: Path | None = None) -> Outputs:
    """Of the model in `folder`: arrays by name, kept in `work`.

    thin: of the sources' training images and of the target's, every so many is taken; 1 takes all.
    """
    path = work / f"{folder.name}-{thin}.npz"
    if not path.is_file():
        with atomically(path) as draft, draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **_made(folder, thin, data))
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def _made(folder: Path, thin: int, data: Path | None) -> Outputs:
    trained = Trained.read(folder)
    assert trained is not None, f"nothing was trained in {folder}"
    images = dataset("pacs", data)
    (target,) = sorted(set(images.domain_names) - set(trained.domain_names))
    whole = leave_one_domain_out(images, target, "official")
    split = replace(whole, train=whole.train[::thin], test=whole.test[::thin])
    pixels = decoded(images, transform_of(trained.settings).cache_size)
    sources = SourceData.of(images, pixels, split)
    model = trained.model(folder)
    with torch.inference_mode(), autocast(trained.settings.precision):
        styles, found, chosen = _fitted(model, sources, trained.settings)
        ways = {**WAYS, "chosen": chosen}
        for name, part in (("source", sources.validation), ("target", test_part(images, pixels, split))):
            seen = _seen(model, part, styles, ways, trained.settings)
            found |= {f"{name} {key}": value for key, value in seen.items()}
    return {**found, "about": np.array([target, str(trained.settings.seed), _method(trained.settings)])}


def _method(settings: Settings) -> str:
    return f"{settings.augment or 'baseline'}{'+sb' if settings.balance else ''}"


def _fitted(model: nn.Module, sources: SourceData, settings: Settings) -> tuple[Styles, Outputs, dict[str, float]]:
    """Centres from nine tenths of the training images; Phi of the others; what `at="auto"` tried, and took."""
    wish, kept, reading = Wish(), HeldImages(), Reading(model)
    styles, held = measured(reading, _batches(sources, settings), wish, POINTS, kept.watch)
    deciding = {point: gate_of(styles[point], wish) for point in POINTS}
    alphas = {point: calibration_of(deciding[point], held, wish)[0] for point in POINTS}
    trial = Trial(reading, styles, deciding, alphas, Variant(), "every")
    tried = trial.of(ways_to_try(POINTS, Variant()), kept, seed=0)
    best = tried[0]
    found: Outputs = {"tried": np.array([repr(asdict(each)) for each in tried]), "chosen": np.array([best.gate_at])}
    for point in POINTS:
        whitening = deciding[point].whitening
        assert whitening is not None
        found |= {
            f"centres {point}": styles[point].mean.numpy(),
            f"variances {point}": styles[point].variance.numpy(),
            f"white matrix {point}": whitening.matrix.numpy(),
            f"white centres {point}": whitening.centres.numpy(),
            f"held phi {point}": held[point].sample.numpy(),
        }
    return styles, found, dict.fromkeys(best.at, best.fraction)


def _batches(sources: SourceData, settings: Settings) -> Iterator[tuple[Tensor, Tensor, list[str]]]:
    for batch in sources.train.test_batches(transform_of(settings), settings.batch_size):
        yield batch.images, batch.classes, [sources.domain_names[domain] for domain in batch.domains.tolist()]


Ways = Mapping[str, Mapping[str, float]]


def _seen(model: nn.Module, part: Part, styles: Styles, ways: Ways, settings: Settings) -> Outputs:
    rows = [_batch(model, batch.images, styles, ways) for batch in part.test_batches(transform_of(settings), 64)]
    joined: Outputs = {name: torch.cat([row[name] for row in rows]).numpy() for name in rows[0]}
    return {**joined, "classes": part.classes.numpy(), "domains": part.domains.numpy()}


def _batch(model: nn.Module, images: Tensor, styles: Styles, ways: Ways) -> dict[str, Tensor]:
    """Phi of every point, and the class in every way; what ways have in common is run once."""
    known: dict[tuple[float, ...], Tensor] = {(): images}
    found = {}
    for place, point in enumerate(POINTS):
        # what has been done so far -> the same with this point's block run, and shifted as some ways want it
        grown: dict[tuple[float, ...], Tensor] = {}
        for done, before in known.items():
            after = _stem(model, before) if point == "maxpool" else model.get_submodule(point)(before)
            if not any(done):
                found[f"phi {point}"] = style_of(after).phi.float()
            for share in {way.get(point, 0.0) for way in ways.values() if _history(way)[:place] == done}:
                grown[(*done, share)] = _shifted(after, styles[point], share)
        known = grown
    for name, way in ways.items():
        pooled = model.get_submodule("layer4")(known[_history(way)]).mean(dim=(2, 3))
        found[name] = model.get_submodule("fc")(pooled).argmax(dim=1).to(torch.int8)
    return found


def _history(way: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(way.get(point, 0.0) for point in POINTS)


def _stem(model: nn.Module, images: Tensor) -> Tensor:
    for name in ("conv1", "bn1", "relu", "maxpool"):
        images = model.get_submodule(name)(images)
    return images


def _shifted(features: Tensor, sources: SourceStyles, share: float) -> Tensor:
    if not share:
        return features
    return shifted_as(Variant(everything=True, fraction=share), features, sources.style, 0.0)
