"""Metrics against literal oracles in plain Python."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from styleshift.training.metrics import Metrics, Predictions, metrics_of, predictions_of


def made(count: int, n_classes: int, n_domains: int, seed: int) -> tuple[Predictions, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    predictions = predictions_of(3 * torch.randn(count, n_classes, generator=generator))
    classes = torch.randint(n_classes, (count,), generator=generator)
    return predictions, classes, torch.randint(n_domains, (count,), generator=generator)


def by_hand(predicted: list[int], truth: list[int], domains: list[int] | None = None, classes: int = 3) -> Metrics:
    count = len(truth)
    predictions = Predictions(torch.tensor(predicted), torch.full((count,), 0.9))
    return metrics_of(predictions, torch.tensor(truth), torch.tensor(domains or [0] * count), classes)


cases = given(st.integers(1, 60), st.integers(2, 6), st.integers(1, 4), st.integers(0, 10**6))


def test_predictions_are_the_largest_logit_and_its_softmax() -> None:
    predictions = predictions_of(torch.tensor([[0.0, 2.0], [1.0, 1.0]]))
    assert predictions.classes.tolist() == [1, 0]
    assert predictions.confidence.tolist() == pytest.approx([math.exp(2) / (1 + math.exp(2)), 0.5])


def test_predictions_tell_logits_apart_that_share_a_float32_softmax() -> None:
    logit = torch.tensor(0.1)
    next_one = torch.nextafter(logit, torch.tensor(1.0))
    assert predictions_of(torch.stack([logit, next_one])[None]).classes.tolist() == [1]


def test_accuracy_is_the_share_of_hits() -> None:
    assert by_hand([0, 1, 2, 2], [0, 1, 2, 0]).accuracy == 0.75


def test_a_class_without_images_has_no_accuracy() -> None:
    assert by_hand([0, 1], [0, 0]).per_class == (0.5, None, None)


def test_worst_domain_is_the_smallest_accuracy() -> None:
    metrics = by_hand([0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 3, 3])
    assert metrics.per_domain == {0: 1.0, 3: 0.5}
    assert metrics.worst_domain == 0.5


def test_confusion_has_the_truth_in_rows() -> None:
    assert by_hand([1, 1, 2], [0, 1, 1]).confusion == ((0, 1, 0), (0, 1, 1), (0, 0, 0))


def test_macro_f1_leaves_out_a_class_that_nobody_mentions() -> None:
    assert by_hand([0, 1], [0, 1]).macro_f1 == 1.0


@cases
def test_macro_f1_is_the_mean_of_harmonic_means(count: int, n_classes: int, n_domains: int, seed: int) -> None:
    predictions, classes, domains = made(count, n_classes, n_domains, seed)
    predicted, truth = predictions.classes.tolist(), classes.tolist()
    scores = []
    for one in range(n_classes):
        hits = sum(p == t == one for p, t in zip(predicted, truth, strict=True))
        if predicted.count(one) + truth.count(one) == 0:
            continue
        precision = hits / predicted.count(one) if predicted.count(one) else 0.0
        recall = hits / truth.count(one) if truth.count(one) else 0.0
        scores.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    assert metrics_of(predictions, classes, domains, n_classes).macro_f1 == pytest.approx(sum(scores) / len(scores))


@cases
def test_calibration_error_is_the_weighted_gap_of_fifteen_bins(
    count: int, n_classes: int, n_domains: int, seed: int
) -> None:
    predictions, classes, domains = made(count, n_classes, n_domains, seed)
    error = 0.0
    for place in range(15):
        low, high = place / 15, (place + 1) / 15
        inside = [i for i in range(count) if low < predictions.confidence[i].item() <= high]
        if inside:
            accuracy = sum(bool(predictions.classes[i] == classes[i]) for i in inside) / len(inside)
            confidence = sum(predictions.confidence[i].item() for i in inside) / len(inside)
            error += len(inside) / count * abs(accuracy - confidence)
    assert metrics_of(predictions, classes, domains, n_classes).calibration_error == pytest.approx(error, abs=1e-9)


def test_full_confidence_is_in_the_last_bin_with_almost_full() -> None:
    predictions = Predictions(torch.tensor([0, 0]), torch.tensor([1.0, 0.95]))
    metrics = metrics_of(predictions, torch.tensor([0, 1]), torch.tensor([0, 0]), 2)
    # one bin: |accuracy 0.5 - confidence 0.975|; in two bins it would be (0 + 0.95) / 2
    assert metrics.calibration_error == pytest.approx(0.475)


@cases
def test_per_class_and_per_domain_agree_with_counting(count: int, n_classes: int, n_domains: int, seed: int) -> None:
    predictions, classes, domains = made(count, n_classes, n_domains, seed)
    metrics = metrics_of(predictions, classes, domains, n_classes)
    rows = list(zip(predictions.classes.tolist(), classes.tolist(), domains.tolist(), strict=True))
    for one in range(n_classes):
        hits = [p == t for p, t, _ in rows if t == one]
        assert metrics.per_class[one] == (sum(hits) / len(hits) if hits else None)
    for one in {d for _, _, d in rows}:
        hits = [p == t for p, t, d in rows if d == one]
        assert metrics.per_domain[one] == sum(hits) / len(hits)


def test_metrics_of_no_images_say_so() -> None:
    nothing = torch.empty(0, dtype=torch.int64)
    with pytest.raises(ValueError, match="at least one image"):
        metrics_of(Predictions(nothing, torch.empty(0)), nothing, nothing, 2)


def test_plain_metrics_are_json() -> None:
    import json

    rows = random.Random(0).choices([0, 1, 2], k=10)
    assert json.loads(json.dumps(by_hand(rows, rows).plain()))["accuracy"] == 1.0
