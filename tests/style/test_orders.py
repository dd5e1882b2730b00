"""The order of rows by coarse and by exact keys, whole and in pieces: against numpy's stable sort."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from styleshift.style import columnsort, orders
from styleshift.style.orders import Numbers, OrderRoom

Drawn: TypeAlias = Callable[[np.random.Generator, int], Numbers]

LARGEST = float(np.finfo(np.float32).max)
# both sides of where coarse keys begin and end, where rows are cut, and where a bit more is needed for the position
LENGTHS = [1, 2, 256, 257, 512, 513, 1024, 1025, 3100, 3136, 4095, 4096, 4097]


@pytest.fixture(params=[True, False], ids=["in pieces", "whole"], autouse=True)
def _pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnsort, "_networks_pay", lambda _: request.param)


@pytest.fixture
def exactly_sorted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows at a time were left to exact keys, with coarse ones tried first."""
    seen: list[int] = []
    before = OrderRoom._sort_exactly

    def counted(room: OrderRoom, rows: NDArray[np.intp], *rest: Any) -> None:
        seen.append(len(rows))
        before(room, rows, *rest)

    monkeypatch.setattr(OrderRoom, "_sort_exactly", counted)
    return seen


def normal(rng: np.random.Generator, length: int) -> Numbers:
    return rng.standard_normal(length, dtype=np.float32)


def rectified(rng: np.random.Generator, length: int) -> Numbers:
    return np.maximum(normal(rng, length), np.float32(0))


def far_from_zero(rng: np.random.Generator, length: int) -> Numbers:
    return normal(rng, length) + np.float32(1e5)


def rounded(rng: np.random.Generator, length: int) -> Numbers:
    """Zeros of both signs among them."""
    return np.round(normal(rng, length) * 3)


def neighbours(rng: np.random.Generator, length: int) -> Numbers:
    """Numbers a few of the smallest steps apart, in a wide row."""
    near = np.float32(1) + rng.integers(0, 9, length).astype(np.float32) * np.finfo(np.float32).eps
    return np.where(rng.random(length) < 0.02, near, normal(rng, length) * 9).astype(np.float32)


def only_neighbours(rng: np.random.Generator, length: int) -> Numbers:
    row = np.full(length, 2, np.float32)
    row[::2] = np.nextafter(np.float32(2), np.float32(3))
    return rng.permuted(row)


def heavy_tailed(rng: np.random.Generator, length: int) -> Numbers:
    return normal(rng, length) ** 9


def constant(rng: np.random.Generator, length: int) -> Numbers:
    return np.full(length, normal(rng, 1)[0])


def tiny(rng: np.random.Generator, length: int) -> Numbers:
    """Below the smallest normal number."""
    return normal(rng, length) * np.float32(1e-42)


def huge(rng: np.random.Generator, length: int) -> Numbers:
    """Finite, from end to end of the range: their difference is not."""
    return np.clip(normal(rng, length), -1, 1) * np.float32(LARGEST)


def one_nan(rng: np.random.Generator, length: int) -> Numbers:
    row = np.sort(normal(rng, length))
    row[rng.integers(length)] = rng.choice([math.nan, -math.nan])
    return row


def infinite(rng: np.random.Generator, length: int) -> Numbers:
    return np.where(rng.random(length) < 0.01, np.copysign(math.inf, normal(rng, length)), rounded(rng, length))


def rising_then_one(rng: np.random.Generator, length: int) -> Numbers:
    """In order but for the last: as infinity as NaN."""
    row = np.arange(length, dtype=np.float32)
    row[-1] = rng.choice([-math.inf, math.inf, math.nan, -1.0])
    return row


def saw(rng: np.random.Generator, length: int) -> Numbers:
    """Few pairs in the wrong order, of values in one step, which many exchanges would be needed to sort."""
    teeth = np.float32(1) + (np.arange(length) % 40).astype(np.float32) * np.finfo(np.float32).eps
    teeth[0], teeth[-1] = -100, 100
    return teeth


DRAWN: list[Drawn] = [normal, rectified, far_from_zero, rounded, neighbours, only_neighbours, heavy_tailed, constant]
DRAWN += [tiny, huge, one_nan, infinite, rising_then_one, saw]


def in_order(rows: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    """What a room gives, positions within rows."""
    room = OrderRoom(*rows.shape)
    ascending, stood = np.full_like(rows, 77), np.full(rows.shape, 77, np.uint32)
    with np.errstate(all="ignore"):
        room.sort(rows, ascending, stood)
    return ascending, stood.astype(np.int64) - room.starts


def expect_order(rows: Numbers) -> None:
    """Stable, bit by bit: zeros without sign, NaN of one kind."""
    ascending, places = in_order(rows)
    expected = rows.argsort(axis=-1, kind="stable")
    np.testing.assert_array_equal(places, expected)
    plain = np.take_along_axis(rows, expected, axis=-1) + np.float32(0)
    plain[np.isnan(plain)] = np.float32(math.nan)
    np.testing.assert_array_equal(ascending.view(np.uint32), plain.view(np.uint32))


@pytest.mark.parametrize("drawn", DRAWN)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_one_kind_are_in_stable_order(drawn: Drawn, length: int) -> None:
    rng = np.random.default_rng(length)
    expect_order(np.stack([drawn(rng, length) for _ in range(3)]))


@given(
    drawn=st.lists(st.sampled_from(DRAWN), min_size=1, max_size=12),
    length=st.sampled_from(LENGTHS) | st.integers(257, 4096),
    seed=st.integers(0, 999),
)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_all_kinds_share_blocks(drawn: list[Drawn], length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expect_order(np.stack([kind(rng, length) for kind in drawn]))


@pytest.mark.parametrize("length", [700, 3136])
def test_order_does_not_depend_on_blocks(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([kind(rng, length) for _ in range(3) for kind in DRAWN])
    found = []
    for block in (1, 5 * length, 1 << 20):
        monkeypatch.setattr(orders, "_BLOCK", block)
        found.append([part.tobytes() for part in in_order(rows)])
    assert found[0] == found[1] == found[2]


def test_only_rows_that_coarse_keys_leave_unsorted_take_exact_ones(exactly_sorted: list[int]) -> None:
    rng = np.random.default_rng(0)
    fast, slow = [normal, rectified, far_from_zero, rounded, constant], [heavy_tailed, one_nan, saw]
    expect_order(np.stack([kind(rng, 3136) for kind in [*fast, *slow]]))
    assert exactly_sorted == [len(slow)]


def test_coarse_keys_are_given_up_after_two_channels_in_vain(exactly_sorted: list[int]) -> None:
    room, rng = OrderRoom(4, 1000), np.random.default_rng(0)
    for _ in range(4):
        rows = np.stack([heavy_tailed(rng, 1000) for _ in range(4)])
        ascending, stood = np.empty_like(rows), np.empty(rows.shape, np.uint32)
        room.sort(rows, ascending, stood)
        np.testing.assert_array_equal(ascending, np.sort(rows, axis=-1))
    assert exactly_sorted == [4, 4]


@pytest.mark.parametrize("length", [256, 3136])
def test_denormals_that_the_processor_takes_for_zero_are_ties(length: int) -> None:
    rows = np.stack([tiny(np.random.default_rng(0), length), normal(np.random.default_rng(1), length)])
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor keeps denormals")
    try:
        ascending, places = in_order(rows)
    finally:
        torch.set_flush_denormal(False)
    assert places[0].tolist() == list(range(length))
    assert not ascending[0].any()
    np.testing.assert_array_equal(places[1], rows[1].argsort(kind="stable"))
