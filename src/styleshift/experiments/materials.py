"""What all runs of a recipe share: the images, and the file that trainings start from."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from styleshift.backbones.building import tensors_in, weights_for
from styleshift.data.cache import Decoded, decoded
from styleshift.data.content import content_key
from styleshift.data.domains import Domains
from styleshift.data.imbalance import scenario
from styleshift.data.progress import bar
from styleshift.data.protocols import Split, leave_one_domain_out, single_source
from styleshift.data.roots import catalogued, data_root, dataset, user_cache
from styleshift.data.transforms import transform
from styleshift.experiments.generated import generated
from styleshift.experiments.planning import Run
from styleshift.experiments.scales import Generated
from styleshift.training.fit import sha256_of

log = logging.getLogger(__name__)


class Content(NamedTuple):
    """What names the materials in a run's key: sha256 of the images, and of the first weights (None: random ones)."""

    images: str
    weights: str | None


@dataclass(frozen=True)
class Materials:
    """images: of `dataset`, decoded at the size that the scale's transform takes. weights: None for random ones."""

    dataset: Domains
    images: Decoded
    weights: Path | None

    @cached_property
    def weights_sha256(self) -> str | None:
        """Of the file that trainings start from."""
        return None if self.weights is None else sha256_of(self.weights)

    @property
    def content(self) -> Content:
        """What names them."""
        return Content(self.images.key, self.weights_sha256)


def materials_of(
    run: Run, store: Path, data: Path | None = None, weights: Path | None = None, others: Iterable[Run] = ()
) -> Materials:
    """What `run`, and every other run of its recipe and scale, needs.

    store: where generated images go. data: the data root. weights: in place of those found below the data root.
    others: runs whose splits are tried, too, before anything is decoded: a recipe's mistakes are cheap to find then.
    """
    start = first_weights(run, data_root(data), weights)
    images = dataset_of(run, store, data)
    for each in {(other.domain, other.split, other.scenario): other for other in (*others, run)}.values():
        split_in(each, images)
    return Materials(images, _decoded(run, images, store), start)


def content_of(run: Run, store: Path, data: Path | None = None, weights: Path | None = None) -> Content | None:
    """What names the materials of `run`, without decoding or fetching any; None where they are not all here."""
    folder = data_root(data) / "weights"
    start = weights_for(run.settings.backbone, weights, folder) if run.scale.pretrained else None
    if run.scale.pretrained and (start is None or not start.is_file()):
        return None
    try:
        images = dataset_of(run, store, data)
        key = content_key(images, user_cache() if run.scale.generated is None else store / "generated")
    except (OSError, KeyError, ValueError):
        return None
    return Content(key, None if start is None else sha256_of(start))


def images_of(run: Run, store: Path, data: Path | None = None) -> tuple[Domains, Decoded]:
    """The dataset of `run` and its images, decoded; arguments as in `materials_of`."""
    images = dataset_of(run, store, data)
    return images, _decoded(run, images, store)


def dataset_of(run: Run, store: Path, data: Path | None = None) -> Domains:
    """The dataset of `run`, or what is drawn in its place; arguments as in `materials_of`."""
    if run.scale.generated is None:
        return dataset(run.dataset, data)
    return generated(run.dataset, *_shape(run.dataset, run.scale.generated, data), store / "generated")


def split_in(run: Run, images: Domains) -> Split:
    """Which images train, validate and test; the run's seed draws whatever is drawn, images taken away included."""
    protocol = single_source if run.protocol == "single-source" else leave_one_domain_out
    split = protocol(images, run.domain, run.split, run.seed)
    return replace(split, train=scenario(run.scenario).apply(images, split.train, run.seed))


def _decoded(run: Run, images: Domains, store: Path) -> Decoded:
    size = transform(run.settings.transform).cache_size
    if run.scale.generated is not None:
        return decoded(images, size, store / "generated", workers=1)
    with bar(f"decoding {images.name} at {size} pixels") as progress:
        return decoded(images, size, progress=progress)


def first_weights(run: Run, root: Path, given: Path | None) -> Path | None:
    """The file that the training starts from: `given`, else below `root`, else what torchvision or timm can get.

    FileNotFoundError, with what to do, where there is none; ValueError if the given one is no file of weights.
    """
    if given is not None:
        tensors_in(given)  # before images are decoded for it; and a wrong one is a mistake at every scale
    if not run.scale.pretrained:
        log.info("weights: random, as scale %s says", run.scale.name)
        return None
    path = weights_for(run.settings.backbone, given, root / "weights", download=True)
    if path is None or not path.is_file():
        raise FileNotFoundError(
            f"no weights to start {run.settings.backbone} from: {path or root / 'weights'} has none"
            f"{'' if path else ', and none could be fetched'}. "
            "Give a safetensors file with torchvision's key names by --weights FILE, or try --scale smoke"
        )
    log.info("weights: %s", path)
    return path


def _shape(name: str, amount: Generated, data: Path | None) -> tuple[tuple[str, ...], Generated]:
    """The dataset's domains, and how much to draw: of no more classes than it has."""
    if entry := catalogued(name):
        domains, classes = entry.facts.names.domains, entry.facts.class_count
    else:
        own = dataset(name, data)
        domains, classes = own.domain_names, len(own.class_names)
    return domains, amount.model_copy(update={"classes": max(2, min(amount.classes, classes))})
