"""What stored models say of held-out source images and of the target, plain and shifted in every way that is compared.

    outputs     of one model: everything that `benchmarks.gate` needs, from its file where it was made before
    WAYS        how a sample can be shifted: at which residual blocks, and how far

Each image is shifted in every way, whether far or not; which ones a gate lets through is decided afterwards.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from styleshift.calibrating import Reading, Wish, calibration_of, measured
from styleshift.data.cache import decoded
from styleshift.data.protocols import leave_one_domain_out
from styleshift.data.roots import dataset
from styleshift.experiments.running import test_part
from styleshift.layer_choice import HeldImages, Trial
from styleshift.sources import SourceStyles
from styleshift.style.shifting import Variant, shifted_as
from styleshift.style.statistics import style_of
from styleshift.training.evaluate import autocast
from styleshift.training.settings import Settings
from styleshift.training.source_data import Part, SourceData, transform_of
from styleshift.training.trained import Trained
from styleshift.writing import atomically

BLOCKS = ("layer1", "layer2", "layer3")
# name -> the share of the way at each block where the sample is shifted
WAYS: dict[str, dict[str, float]] = {
    "plain": {},
    "layer1": {"layer1": 1.0},
    "layer2": {"layer2": 1.0},
    "layer2 x 0.8": {"layer2": 0.8},
    "layer2 x 0.6": {"layer2": 0.6},
    "layer3": {"layer3": 1.0},
    "layer1, layer2": {"layer1": 1.0, "layer2": 1.0},
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
        styles, found = _fitted(model, sources, trained.settings)
        for name, part in (("source", sources.validation), ("target", test_part(images, pixels, split))):
            found |= {f"{name} {key}": value for key, value in _seen(model, part, styles, trained.settings).items()}
    return {**found, "about": np.array([target, str(trained.settings.seed), _method(trained.settings)])}


def _method(settings: Settings) -> str:
    return f"{settings.augment or 'baseline'}{'+sb' if settings.balance else ''}"


def _fitted(model: nn.Module, sources: SourceData, settings: Settings) -> tuple[dict[str, SourceStyles], Outputs]:
    """Centres from nine tenths of the training images; Phi of the others; and what `at="auto"` tried."""
    wish, kept, reading = Wish(), HeldImages(), Reading(model)
    styles, held = measured(reading, _batches(sources, settings), wish, BLOCKS, kept.watch)
    alphas = {block: calibration_of(styles, held, wish, block)[0] for block in BLOCKS}
    pairs = [(gate, at) for at in BLOCKS for gate in BLOCKS if gate <= at]
    tried = Trial(reading, styles, Variant(everything=True), "every", seed=0).of(pairs, alphas, kept)
    found: Outputs = {"tried": np.array([repr(asdict(each)) for each in tried])}
    found["chosen"] = np.array([tried[0].gate_at, tried[0].at])
    for block in BLOCKS:
        found |= {
            f"centres {block}": styles[block].mean.numpy(),
            f"variances {block}": styles[block].variance.numpy(),
            f"held phi {block}": held[block].sample.numpy(),
        }
    return styles, found


def _batches(sources: SourceData, settings: Settings) -> Iterator[tuple[Tensor, Tensor, list[str]]]:
    for batch in sources.train.test_batches(transform_of(settings), settings.batch_size):
        yield batch.images, batch.classes, [sources.domain_names[domain] for domain in batch.domains.tolist()]


def _seen(model: nn.Module, part: Part, styles: dict[str, SourceStyles], settings: Settings) -> Outputs:
    rows = [_batch(model, batch.images, styles) for batch in part.test_batches(transform_of(settings), 64)]
    joined: Outputs = {name: torch.cat([row[name] for row in rows]).numpy() for name in rows[0]}
    return {**joined, "classes": part.classes.numpy(), "domains": part.domains.numpy()}


def _batch(model: nn.Module, images: Tensor, styles: dict[str, SourceStyles]) -> dict[str, Tensor]:
    """Phi of every block, and the class in every way; what ways have in common is run once."""
    features = model.get_submodule("maxpool")(_stem(model, images))
    known: dict[tuple[float, ...], Tensor] = {(): features}
    found = {}
    for block in BLOCKS:
        # what has been done so far -> the same with this block run, and shifted as some ways want it
        grown: dict[tuple[float, ...], Tensor] = {}
        place = BLOCKS.index(block)
        for done, before in known.items():
            after = model.get_submodule(block)(before)
            if not any(done):
                found[f"phi {block}"] = style_of(after).phi.float()
            for share in dict.fromkeys(way.get(block, 0.0) for way in WAYS.values() if _history(way)[:place] == done):
                grown[(*done, share)] = _shifted(after, styles[block], share)
        known = grown
    for name, way in WAYS.items():
        pooled = model.get_submodule("layer4")(known[_history(way)]).mean(dim=(2, 3))
        found[name] = model.get_submodule("fc")(pooled).argmax(dim=1).to(torch.int8)
    return found


def _history(way: dict[str, float]) -> tuple[float, ...]:
    return tuple(way.get(block, 0.0) for block in BLOCKS)


def _stem(model: nn.Module, images: Tensor) -> Tensor:
    for name in ("conv1", "bn1", "relu"):
        images = model.get_submodule(name)(images)
    return images


def _shifted(features: Tensor, sources: SourceStyles, share: float) -> Tensor:
    if not share:
        return features
    return shifted_as(Variant(everything=True, fraction=share), features, sources.style, 0.0)
