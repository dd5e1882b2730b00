"""Sorting by columns: against numpy's sort, for every number of pieces, on the rows that are hardest to sort so."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from styleshift.style import columnsort
from styleshift.style.columnsort import KeyRoom, Keys, Kind, pieces_for

NETWORK: dict[Kind, int] = {np.uint32: 512, np.uint64: 256}
KINDS = list(NETWORK)
POSITIONS = 1 << 13


def by_pieces(keys: Keys, pieces: int) -> Keys:
    room = KeyRoom(len(keys), keys.shape[1], keys.dtype.type, pieces)
    room.keys(len(keys))[:] = keys
    room.sort(len(keys))
    sorted_keys: Keys = room.keys(len(keys)).copy()
    return sorted_keys


def steps(pieces: int, length: int, kind: Kind, seed: int) -> Keys:
    """Rows of two values, above positions that make them unique; every piece is ones for its own share of places."""
    rng = np.random.default_rng(seed)
    share = rng.random((20, pieces)).repeat(ceil(length / pieces), axis=1)[:, :length]
    return (rng.random((20, length)) < share).astype(kind) * kind(POSITIONS) + np.arange(length, dtype=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pieces", [1, *range(3, 17)])
@pytest.mark.parametrize("less", [0, 1, 37, 200])
def test_rows_of_two_values_are_sorted_in_any_number_of_pieces(kind: Kind, pieces: int, less: int) -> None:
    keys = steps(pieces, pieces * NETWORK[kind] - less, kind, seed=less)
    np.testing.assert_array_equal(by_pieces(keys, pieces), np.sort(keys, axis=-1))


@given(kind=st.sampled_from(KINDS), pieces=st.integers(3, 16), less=st.integers(0, 255), seed=st.integers(0, 999))
@settings(deadline=None, max_examples=40)
def test_shuffled_keys_are_sorted(kind: Kind, pieces: int, less: int, seed: int) -> None:
    length = pieces * NETWORK[kind] - less
    keys = np.random.default_rng(seed).permuted(np.tile(np.arange(length, dtype=kind), (2, 1)), axis=-1)
    np.testing.assert_array_equal(by_pieces(keys, pieces), np.sort(keys, axis=-1))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_in_order_in_reverse_and_in_waves_are_sorted(kind: Kind) -> None:
    length = 7 * NETWORK[kind] - 3
    up = np.arange(length, dtype=kind)
    keys = np.stack([up, up[::-1], up * kind(7) % kind(length), np.concatenate((up[::2], up[1::2][::-1]))])
    np.testing.assert_array_equal(by_pieces(keys, 7), np.sort(keys, axis=-1))


@pytest.mark.parametrize("pieces", [1, 3])
def test_room_is_used_again_by_fewer_rows(pieces: int) -> None:
    room, rng = KeyRoom(4, 1501, np.uint32, pieces), np.random.default_rng(0)
    for count in (4, 1, 3):
        keys = rng.permuted(np.tile(np.arange(1501, dtype=np.uint32), (count, 1)), axis=-1)
        room.keys(count)[:] = keys
        room.sort(count)
        np.testing.assert_array_equal(room.keys(count), np.sort(keys, axis=-1))


@pytest.mark.parametrize(
    ("length", "kind", "expected"),
    [
        (512, np.uint32, 1),
        (1024, np.uint32, 1),
        (1025, np.uint32, 3),
        (8192, np.uint32, 16),
        (8193, np.uint32, 1),
        (512, np.uint64, 1),
        (513, np.uint64, 3),
        (4096, np.uint64, 16),
        (4097, np.uint64, 1),
    ],
)
def test_rows_of_three_to_sixteen_networks_are_cut(
    length: int, kind: Kind, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnsort, "_networks_pay", lambda _: True)
    assert pieces_for(length, kind) == expected


def test_rows_stay_whole_where_networks_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnsort, "_networks_pay", lambda _: False)
    assert pieces_for(3136, np.uint32) == 1
