"""The sorting kernels: against plain Python, over block borders, on one thread and on two."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from styleshift.style.sorting import mix_ranks, mix_ranks_backward, sort_rows

Numbers: TypeAlias = NDArray[np.float32]

NUMBERS = st.floats(width=32)
# few values, so that many are equal; both zeros, both infinities and NaN of both signs among them
TIED = st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 1e-40, 2.0, math.inf, math.nan, -math.nan])
MODEST = st.floats(-100, 100, width=32)
# more than two blocks of numbers, where two threads begin; rows that do not fill a block, and one that overflows it
MANY = [(3, 60_000), (2, 140_000), (300, 1_000), (280_001, 1)]


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def noise(*shape: int, seed: int = 0) -> Numbers:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def tied(*shape: int) -> Numbers:
    """Numbers of which most are equal to others."""
    return np.round(noise(*shape) * 100)


def sorted_rows(rows: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    ascending, places = np.full_like(rows, 77), np.full(rows.shape, -1, np.int64)
    sort_rows(rows, ascending, places)
    return ascending, places


def mixed_ranks(values: Numbers, partners: list[int], share: list[float]) -> tuple[Numbers, NDArray[np.int32]]:
    samples, channels, length = values.shape
    mixed, places = np.full_like(values, 77), np.full((channels, samples, length), -1, np.int32)
    mix_ranks(values, np.array(partners, np.int64), np.array(share, np.float32), mixed, places)
    return mixed, places


def pulled(gradient: Numbers, partners: list[int], share: list[float], places: NDArray[np.int32]) -> Numbers:
    by_values = np.full_like(gradient, 77)
    mix_ranks_backward(gradient, np.array(partners, np.int64), np.array(share, np.float32), places, by_values)
    return by_values


def plain_order(row: list[float]) -> list[int]:
    """Positions by ascending value, NaN last; Python's sort leaves equal ones in order of position."""
    return sorted(range(len(row)), key=lambda i: (math.isnan(row[i]), 0.0 if math.isnan(row[i]) else row[i]))


def plain_orders(values: Numbers) -> list[list[list[int]]]:
    return [[plain_order(row) for row in sample] for sample in values.tolist()]


def plain_mixing(values: Numbers, partners: list[int], share: list[float]) -> list[list[list[float]]]:
    """EFDMix, letter by letter: lambda * x[tau_i] + (1 - lambda) * y[kappa_i], written where x[tau_i] stood."""
    x, order = values.tolist(), plain_orders(values)
    mixed = values.tolist()
    for b, partner in enumerate(partners):
        for c in range(values.shape[1]):
            for tau, kappa in zip(order[b][c], order[partner][c], strict=True):
                mixed[b][c][tau] = share[b] * x[b][c][tau] + (1 - share[b]) * x[partner][c][kappa]
    return mixed


def plain_pulling(
    gradient: Numbers, partners: list[int], share: list[float], order: list[list[list[int]]]
) -> list[list[list[float]]]:
    """1 to the content, and 1 - lambda to the partner's value of the same rank."""
    given, by_values = gradient.tolist(), gradient.tolist()
    for b, partner in enumerate(partners):
        for c in range(gradient.shape[1]):
            for tau, kappa in zip(order[b][c], order[partner][c], strict=True):
                by_values[partner][c][kappa] += (1 - share[b]) * given[b][c][tau]
    return by_values


@st.composite
def mixings(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> tuple[Numbers, list[int], list[float]]:
    """Values, partners and shares of a batch."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 9)))
    samples = shape[0]
    partners = draw(st.lists(st.integers(0, samples - 1), min_size=samples, max_size=samples))
    shares = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])
    share = draw(st.lists(shares, min_size=samples, max_size=samples))
    return draw(arrays(np.float32, shape, elements=elements)), partners, share


# sort_rows


def test_nan_is_last_minus_infinity_first_and_zeros_keep_their_order() -> None:
    _, places = sorted_rows(np.array([[3, math.nan, 0, -0.0, math.inf, -math.inf, 3]], np.float32))
    assert places.tolist() == [[5, 2, 3, 0, 6, 4, 1]]


@given(
    rows=arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=NUMBERS | TIED),
)
@settings(deadline=None, max_examples=80)
def test_rows_are_sorted_as_in_plain_python(rows: Numbers) -> None:
    ascending, places = sorted_rows(rows)
    order = [plain_order(row) for row in rows.tolist()]
    assert places.tolist() == order
    np.testing.assert_array_equal(ascending, [[row[i] for i in of] for row, of in zip(rows, order, strict=True)])


def test_bit_patterns_from_the_whole_range_are_sorted_as_by_numpy() -> None:
    patterns = np.arange(0, 1 << 32, 65_521, dtype=np.uint32)
    np.random.default_rng(0).shuffle(patterns)
    rows = patterns.view(np.float32)[None]
    ascending, places = sorted_rows(rows)
    expected = rows.argsort(axis=-1, kind="stable")
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(ascending, np.take_along_axis(rows, expected, axis=-1))


@pytest.mark.parametrize("shape", MANY)
def test_rows_are_sorted_the_same_in_whatever_blocks(shape: tuple[int, int]) -> None:
    rows = tied(*shape)
    ascending, places = sorted_rows(rows)
    expected = rows.argsort(axis=-1, kind="stable")
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(ascending, np.take_along_axis(rows, expected, axis=-1))


@pytest.mark.parametrize("shape", MANY)
def test_rows_are_sorted_the_same_on_one_thread_and_on_two(shape: tuple[int, int]) -> None:
    rows = tied(*shape)
    with threads(1):
        alone = sorted_rows(rows)
    with threads(2):
        together = sorted_rows(rows)
    assert [part.tobytes() for part in alone] == [part.tobytes() for part in together]


def test_sorting_leaves_the_rows_as_they_were() -> None:
    rows = np.array([[2, -0.0, math.nan, -1]], np.float32)
    before = rows.tobytes()
    sorted_rows(rows)
    assert rows.tobytes() == before


# mix_ranks


@given(mixing=mixings(MODEST | TIED))
@settings(deadline=None, max_examples=80)
def test_ranks_are_mixed_as_in_plain_python(mixing: tuple[Numbers, list[int], list[float]]) -> None:
    mixed, _ = mixed_ranks(*mixing)
    np.testing.assert_allclose(mixed, plain_mixing(*mixing), rtol=1e-6, atol=5e-5)


@given(mixing=mixings(MODEST | TIED))
@settings(deadline=None, max_examples=40)
def test_places_tell_where_every_rank_stood_channel_by_channel(mixing: tuple[Numbers, list[int], list[float]]) -> None:
    _, places = mixed_ranks(*mixing)
    assert places.transpose(1, 0, 2).tolist() == plain_orders(mixing[0])


def test_ranks_are_mixed_the_same_when_nobody_asks_for_places() -> None:
    values, partners, share = tied(3, 2, 50), np.array([2, 0, 1]), np.array([0.2, 0.5, 0.9], np.float32)
    unasked = np.full_like(values, 77)
    mix_ranks(values, partners, share, unasked, None)
    asked, _ = mixed_ranks(values, partners.tolist(), share.tolist())
    assert unasked.tobytes() == asked.tobytes()


@pytest.mark.parametrize("shape", [(5, 2, 50_000), (2, 3, 140_000), (300, 2, 1_000)])
def test_ranks_are_mixed_across_blocks(shape: tuple[int, int, int]) -> None:
    values, partners = noise(*shape), [(b * 7 + 3) % shape[0] for b in range(shape[0])]
    mixed, _ = mixed_ranks(values, partners, [0.25] * shape[0])
    order = values.argsort(axis=-1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=-1)
    expected = np.empty_like(values)
    np.put_along_axis(expected, order, np.float32(0.25) * ranked + np.float32(0.75) * ranked[partners], axis=-1)
    np.testing.assert_allclose(mixed, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [3, 4])
def test_ranks_are_mixed_and_pulled_the_same_on_one_thread_and_on_two(count: int) -> None:
    values, gradient = tied(4, count, 30_000), noise(4, count, 30_000, seed=1)
    partners, share = [3, 3, 1, 0], [0.1, 0.5, 0.9, 1.0]
    found = []
    for workers in (1, 2):
        with threads(workers):
            mixed, places = mixed_ranks(values, partners, share)
            found.append([part.tobytes() for part in (mixed, places, pulled(gradient, partners, share, places))])
    assert found[0] == found[1]


@pytest.mark.parametrize("length", [3, 70_000])  # on this thread, and on two others
def test_infinities_that_cancel_give_nan_without_a_warning(length: int) -> None:
    values = np.empty((2, 2, length), np.float32)
    values[0], values[1] = math.inf, -math.inf
    mixed, places = mixed_ranks(values, [1, 0], [0.5, 0.5])
    by_values = pulled(values, [1, 0], [0.5, 0.5], places)
    assert np.isnan(mixed).all()
    assert np.isnan(by_values).all()


@pytest.mark.parametrize("length", [3, 70_000])
def test_a_gradient_too_large_for_float32_is_infinite_without_a_warning(length: int) -> None:
    gradient = np.full((2, 2, length), 3e38, np.float32)
    _, places = mixed_ranks(noise(2, 2, length), [0, 0], [0.0, 0.0])
    assert np.isposinf(pulled(gradient, [0, 0], [0.0, 0.0], places)[0]).all()


# mix_ranks_backward


def test_the_lender_of_two_samples_receives_from_both() -> None:
    gradient = np.array([[[1.0]], [[10.0]], [[100.0]]], np.float32)
    places = np.zeros((1, 3, 1), np.int32)
    received = pulled(gradient, [2, 2, 2], [0.5, 0.75, 1.0], places)
    assert received.reshape(-1).tolist() == [1, 10, 100 + 0.5 * 1 + 0.25 * 10]


@given(mixing=mixings(MODEST | TIED), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=80)
def test_gradients_are_pulled_as_in_plain_python(mixing: tuple[Numbers, list[int], list[float]], seed: int) -> None:
    values, partners, share = mixing
    gradient, order = noise(*values.shape, seed=seed), plain_orders(values)
    places = np.array(order, np.int32).transpose(1, 0, 2).copy()
    expected = plain_pulling(gradient, partners, share, order)
    np.testing.assert_allclose(pulled(gradient, partners, share, places), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_gradients_are_pulled_by_places_of_either_size(kind: type[np.uint16] | type[np.int32]) -> None:
    gradient = np.array([[[1, 2, 3]], [[10, 20, 30]]], np.float32)
    places = np.array([[[2, 0, 1], [1, 2, 0]]], kind)
    by_values = np.empty_like(gradient)
    mix_ranks_backward(gradient, np.array([1, 0]), np.zeros(2, np.float32), places, by_values)
    assert by_values.tolist() == [[[31, 12, 23]], [[12, 23, 31]]]
