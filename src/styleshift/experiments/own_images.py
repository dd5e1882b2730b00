"""A training on the user's own images: all domains, or all but one that is then tested on.

train_on    a folder with the model and the sources' styles, ready to predict and to shift
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from styleshift.data.cache import decoded
from styleshift.data.domains import Domains
from styleshift.data.progress import bar
from styleshift.data.protocols import VALIDATION_SHARE, Split, leave_one_domain_out
from styleshift.data.transforms import transform
from styleshift.experiments.running import keep_styles, test_part
from styleshift.training.evaluate import evaluate
from styleshift.training.fit import train
from styleshift.training.progress import ShowProgress
from styleshift.training.settings import Settings
from styleshift.training.source_data import SourceData
from styleshift.training.source_styles import source_styles
from styleshift.training.variants import shift_row


@dataclass(frozen=True)
class Outcome:
    """shift_at: the layer whose styles are kept. accuracy: on the domain left out, as it is and shifted; or empty."""

    shift_at: str
    accuracy: dict[str, float]


def train_on(
    dataset: Domains, settings: Settings, target: str | None, folder: Path, weights: Path | None, progress: ShowProgress
) -> Outcome:
    """Train on every domain of `dataset` but `target`. Goes on from where an earlier try in `folder` ended."""
    split = _without(dataset, target, settings.seed) if target else everything(dataset, settings.seed)
    how = transform(settings.transform)
    with bar(f"decoding {dataset.name}") as show:
        images = decoded(dataset, how.cache_size, progress=show)
    model = train(settings, dataset, images, split, folder, weights=weights, progress=progress)
    at = str(getattr(model, "shift_at", "layer2"))
    styles = source_styles(model, settings, SourceData.of(dataset, images, split), how, [at])
    keep_styles(model, styles[at], settings, folder)
    if not len(split.test):
        return Outcome(at, {})
    batches = test_part(dataset, images, split).test_batches(how, settings.batch_size)
    rows = [shift_row("none", at), shift_row("ts", at)]
    tested = evaluate(model, batches, styles, rows, precision=settings.precision).rows
    return Outcome(at, {name: result.metrics.accuracy for name, result in tested.items()})


def everything(dataset: Domains, seed: int) -> Split:
    """All domains are sources; of each a seeded tenth validates."""
    held_out = np.zeros(len(dataset), dtype=bool)
    for number in range(len(dataset.domain_names)):
        shuffled = np.random.default_rng((seed, number)).permutation(np.flatnonzero(dataset.domains == number))
        held_out[shuffled[: int(len(shuffled) * VALIDATION_SHARE["random"])]] = True
    indices = np.arange(len(dataset))
    return Split(indices[~held_out], indices[held_out], indices[:0], tuple(range(len(dataset.domain_names))), ())


def _without(dataset: Domains, target: str, seed: int) -> Split:
    return leave_one_domain_out(dataset, target, "random" if dataset.lists is None else "official", seed)
