"""Batches of an epoch, levelled classes, effective-number weights."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from styleshift.training.sampling import Sampling, effective_number_weights, epoch_batches, steps_per_epoch

UNEVEN = torch.tensor([0] * 7 + [1] * 3 + [2] * 2)
some_classes = st.lists(st.integers(0, 3), min_size=1, max_size=40).map(torch.tensor)
samplings = st.sampled_from(("random", "oversample", "undersample"))


def batches(classes: Tensor, size: int, sampling: Sampling = "random", seed: int = 0) -> Tensor:
    return epoch_batches(classes, size, sampling, torch.Generator().manual_seed(seed))


def test_a_random_epoch_shows_no_image_twice() -> None:
    rows = batches(UNEVEN, 5).flatten().tolist()
    assert len(rows) == len(set(rows)) == 10


def test_images_left_over_are_others_in_another_epoch() -> None:
    assert set(batches(UNEVEN, 5).flatten().tolist()) != set(batches(UNEVEN, 5, seed=1).flatten().tolist())


def test_a_set_smaller_than_a_batch_is_one_batch() -> None:
    assert sorted(batches(UNEVEN, 100).flatten().tolist()) == list(range(12))


@given(some_classes, st.integers(1, 20), samplings, st.integers(0, 1000))
def test_every_epoch_has_the_steps_that_are_foretold(
    classes: Tensor, size: int, sampling: Sampling, seed: int
) -> None:
    assert len(batches(classes, size, sampling, seed)) == steps_per_epoch(classes, size, sampling)


def test_oversampling_shows_every_class_as_often_as_the_largest() -> None:
    assert Counter(UNEVEN[batches(UNEVEN, 1, "oversample")[:, 0]].tolist()) == {0: 7, 1: 7, 2: 7}


def test_oversampling_spreads_repeats_evenly() -> None:
    times = Counter(batches(UNEVEN, 1, "oversample").flatten().tolist())
    assert sorted(times[row] for row in (7, 8, 9)) == [2, 2, 3]
    assert sorted(times[row] for row in (10, 11)) == [3, 4]


def test_undersampling_shows_every_class_as_often_as_the_smallest() -> None:
    rows = batches(UNEVEN, 1, "undersample").flatten()
    assert Counter(UNEVEN[rows].tolist()) == {0: 2, 1: 2, 2: 2}
    assert len(set(rows.tolist())) == 6


def test_effective_weights_are_the_formula_normalised() -> None:
    counts = [700, 30, 2]
    raw = [(1 - 0.9999) / (1 - 0.9999**count) for count in counts]
    expected = [weight / sum(raw) * 3 for weight in raw]
    assert effective_number_weights(torch.tensor(counts)).tolist() == pytest.approx(expected)


def test_effective_weights_of_a_class_without_images_are_zero() -> None:
    weights = effective_number_weights(torch.tensor([5, 0, 5]))
    assert weights.tolist() == pytest.approx([1.5, 0.0, 1.5])
