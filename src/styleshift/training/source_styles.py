"""The sources' styles of a trained model, at every layer that a row of the results shifts at (paper Sec. 4.2).

Reading: measured after training, in eval mode and with the test transform, over all training images. Where a training
had no domain labels, k-means makes as many pseudo-domains here as it had there.
"""

from collections.abc import Iterable

from torch import nn

from styleshift.data.batch import Batch
from styleshift.data.transforms import Transform
from styleshift.sources import SourceStyles, sources_of
from styleshift.training.evaluate import autocast
from styleshift.training.settings import Settings
from styleshift.training.source_data import SourceData


def source_styles(
    model: nn.Module, settings: Settings, data: SourceData, transform: Transform, layers: Iterable[str]
) -> dict[str, SourceStyles]:
    """For each of `layers`, the styles of the sources that `model` was trained on."""
    styles = {}
    for layer in layers:
        batches = (_named(batch, data) for batch in data.train.test_batches(transform, settings.batch_size))
        with autocast(settings.precision):
            styles[layer] = sources_of(model, batches, layer)
        if settings.pseudo_domains is not None:
            styles[layer] = styles[layer].clustered(settings.pseudo_domains, settings.seed)
    return styles


def _named(batch: Batch, data: SourceData) -> tuple[object, list[str]]:
    return batch.images, [data.domain_names[domain] for domain in batch.domains.tolist()]
