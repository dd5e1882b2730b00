"""Test-time methods as rows of a training's results: one pass over the shuffled test images, from a fresh start.

    online_result    metrics and share shifted of one row
    inference_times  milliseconds an image of several, in turns

Reading: the test images come in the order `iid` of streams.py, drawn with the training's seed, in batches of 64.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from styleshift.adaptation.wrapping import Adapted
from styleshift.data.transforms import Transform
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles
from styleshift.training.adapted_rows import AdaptedRow, Row, wrapped
from styleshift.training.cost import costs
from styleshift.training.evaluate import RowResult, autocast
from styleshift.training.metrics import Predictions, metrics_of, predictions_of
from styleshift.training.settings import Precision
from styleshift.training.source_data import Part
from styleshift.training.streams import BATCH, stream

_TIMED_ROUNDS = 5


def online_result(
    row: AdaptedRow,
    model: nn.Module,
    part: Part,
    transform: Transform,
    styles: Mapping[str, SourceStyles],
    *,
    precision: Precision = "float32",
    seed: int = 0,
) -> RowResult:
    """What `row` makes of the images of `part`. `model` stays as it is."""
    adapted = wrapped(row, model, styles, seed=seed)
    batches = stream("iid", part.classes, part.domains, seed=seed)
    said, shifted = [], []
    for numbers in batches:
        images = _prepared(part, transform, numbers)
        with autocast(precision):
            shifted.append(are_shifted(adapted, images))
            said.append(adapted(images))
    order = torch.cat(batches)
    predictions: Predictions = predictions_of(torch.cat(said))
    return RowResult(
        metrics=metrics_of(predictions, part.classes[order], part.domains[order], said[0].shape[1]),
        shifted=float(torch.cat(shifted).double().mean()),
    )


def are_shifted(adapted: Adapted, images: Tensor) -> Tensor:
    """Which of these images a method is about to shift; none where it does not shift at all."""
    if isinstance(adapted.body, ShiftedModel):
        far: Tensor = adapted.body.explain(images).far
        return far
    return torch.zeros(len(images), dtype=torch.bool)


def inference_times(
    rows: Sequence[tuple[str, Row]],
    model: nn.Module,
    part: Part,
    transform: Transform,
    styles: Mapping[str, SourceStyles],
    *,
    precision: Precision = "float32",
) -> dict[str, float]:
    """Milliseconds an image of each row, by its name, in batches of 64 (of fewer where there are no more images)."""
    images = _prepared(part, transform, torch.arange(min(BATCH, len(part))))
    adapted = {name: wrapped(row, model, styles) for name, row in rows}
    with autocast(precision):
        found = costs(model, adapted, images, rounds=_TIMED_ROUNDS)
    return {cost.method: cost.milliseconds.median for cost in found if cost.method in adapted and cost.milliseconds}


def _prepared(part: Part, transform: Transform, numbers: Tensor) -> Tensor:
    images: Tensor = transform.test(part.images.take(part.indices[numbers.numpy()]))
    return images
