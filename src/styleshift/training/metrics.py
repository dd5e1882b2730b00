"""What is reported of predictions: accuracy, per class, macro-F1, worst domain, calibration, confusion.

Reading: a class that is in neither the truth nor the predictions has no F1 and does not enter the mean.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

_BINS = 15  # of the calibration error, as Guo et al. 2017 and most since


class Predictions(NamedTuple):
    """What a model said of each image: the class, and how sure it was of it (the softmax's largest value)."""

    classes: Integer[Tensor, "n"]
    confidence: Float[Tensor, "n"]


@dataclass(frozen=True)
class Metrics:
    """Shares between 0 and 1; None where there is nothing to take a share of.

    per_class: accuracy of each class's images.
    per_domain: of each domain's, by domain id. worst_domain: the smallest of these.
    calibration_error: mean gap of confidence and accuracy over 15 bins of equal width (ECE).
    confusion: row = true class, column = predicted class, in images.
    """

    count: int
    accuracy: float
    per_class: tuple[float | None, ...]
    macro_f1: float
    per_domain: dict[int, float]
    worst_domain: float
    calibration_error: float
    confusion: tuple[tuple[int, ...], ...]

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def predictions_of(logits: Float[Tensor, "n K"]) -> Predictions:
    """The class of each row's largest logit (the first of equals) and its softmax."""
    probabilities = logits.to(torch.float32).softmax(dim=1)
    # the class from the logits: two that nearly agree may share one float32 probability
    classes = logits.argmax(dim=1)
    return Predictions(classes, probabilities.gather(1, classes[:, None])[:, 0])


def metrics_of(
    predictions: Predictions, classes: Integer[Tensor, "n"], domains: Integer[Tensor, "n"], n_classes: int
) -> Metrics:
    """All metrics of predictions against true classes. ValueError where there is not one image."""
    if len(classes) == 0:
        raise ValueError("metrics need at least one image; got none. Is the split's part empty?")
    confusion = _confusion(classes, predictions.classes, n_classes)
    hits = predictions.classes == classes
    per_domain = {domain: _share(hits[domains == domain]) for domain in sorted(set(domains.tolist()))}
    return Metrics(
        count=len(classes),
        accuracy=_share(hits),
        per_class=_per_class(confusion),
        macro_f1=_macro_f1(confusion),
        per_domain=per_domain,
        worst_domain=min(per_domain.values()),
        calibration_error=_calibration_error(hits, predictions.confidence),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def _share(hits: Tensor) -> float:
    return int(hits.sum()) / len(hits)


def _confusion(truth: Tensor, predicted: Tensor, n_classes: int) -> Tensor:
    counts = torch.bincount(truth * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes)


def _per_class(confusion: Tensor) -> tuple[float | None, ...]:
    hits, totals = confusion.diagonal().tolist(), confusion.sum(dim=1).tolist()
    return tuple(hit / total if total else None for hit, total in zip(hits, totals, strict=True))


def _macro_f1(confusion: Tensor) -> float:
    hits = confusion.diagonal().to(torch.float64)
    # F1 = 2 hits / (images of the class + images said to be of it)
    mentions = confusion.sum(dim=0) + confusion.sum(dim=1)
    known = mentions > 0
    return float((2 * hits[known] / mentions[known]).mean())


def _calibration_error(hits: Tensor, confidence: Tensor) -> float:
    # bins are open below and closed above, so a confidence of exactly 1 is in the last one
    bins = (confidence.to(torch.float64) * _BINS).ceil().to(torch.int64).clamp(1, _BINS) - 1
    surplus = hits.to(torch.float64) - confidence.to(torch.float64)
    gaps = torch.zeros(_BINS, dtype=torch.float64).index_add_(0, bins, surplus)
    return float(gaps.abs().sum() / len(hits))
