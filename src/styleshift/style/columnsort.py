"""Sorting rows of whole numbers by short sorting networks: Leighton's columnsort (IEEE Trans. Computers, 1985).

    KeyRoom      rows of unique keys, sorted in place
    pieces_for   into how many pieces a row is best cut

numpy sorts up to 512 keys of 4 bytes, or 256 of 8, by a network. Longer rows it partitions first, and with AVX-512 that
is slow on processors that write compressed vectors slowly (Zen 4). There, a few networks over all pieces cost less.

A row is cut into pieces; these are sorted, and dealt out in turns, as cards are, to as many new pieces, of which every
one then holds nearly the same as the others. Sorted and taken back in turns, they give a row in which keys that are
out of order lie close together, so that sorting windows of it, half a window apart, ends the work.
"""

import time
from functools import cache
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Keys: TypeAlias = NDArray[np.uint32] | NDArray[np.uint64]
Kind: TypeAlias = type[np.uint32] | type[np.uint64]

# keys in one network, by the bytes of a key
_NETWORK = {4: 512, 8: 256}
_KINDS: dict[int, Kind] = {4: np.uint32, 8: np.uint64}
# two pieces gain nothing; of more than 16, the disorder left after dealing takes too many windows
_PIECES = range(3, 17)
# what is moved at once when dealing, by its bytes: larger things are moved faster, but dealt less evenly
_MOVED: dict[int, type[Any]] = {16: np.complex128, 8: np.uint64, 4: np.uint32}


class KeyRoom:
    """Room for `count` rows of `length` unique keys; what is sorted is overwritten by the next block."""

    def __init__(self, count: int, length: int, kind: Kind, pieces: int = 1) -> None:
        size = np.dtype(kind).itemsize
        grain = _grain(length, pieces, size)
        # of even length, to be halved
        piece = length if pieces == 1 else ceil(length / (pieces * max(2, grain))) * max(2, grain)
        self._length, self._pieces, self._piece = length, pieces, piece
        self._moved = _MOVED[grain * size]
        self._rounds = 1 + ceil(_disorder(pieces, grain) / max(1, piece // 2))
        # what fills up the last piece is larger than any key: once sorted to the end, it stays there
        self._keys = np.full((count, pieces * piece), np.iinfo(kind).max, kind)
        self._dealt = np.empty_like(self._keys) if pieces > 1 else self._keys

    def keys(self, count: int) -> Any:
        """The first `count` rows, to be written and, once sorted, read."""
        return self._keys[:count, : self._length]

    def sort(self, count: int) -> None:
        """Every row of the first `count` ascending."""
        keys, dealt = self._keys[:count], self._dealt[:count]
        if self._pieces == 1:
            keys.sort(axis=-1)
            return
        by_turns = keys.view(self._moved).reshape(count, -1, self._pieces).swapaxes(1, 2)
        hands = dealt.view(self._moved).reshape(count, self._pieces, -1)
        keys.reshape(count, self._pieces, -1).sort(axis=-1)
        np.copyto(hands, by_turns)
        dealt.reshape(count, self._pieces, -1).sort(axis=-1)
        np.copyto(by_turns, hands)
        for turn in range(self._rounds):
            _sort_windows(keys, turn % 2 * self._piece // 2, self._piece)


def pieces_for(length: int, kind: Kind) -> int:
    """1 if rows of that length are best sorted whole."""
    size = np.dtype(kind).itemsize
    pieces = ceil(length / _NETWORK[size])
    return pieces if pieces in _PIECES and _networks_pay(size) else 1


def _sort_windows(keys: NDArray[Any], start: int, window: int) -> None:
    """Every window from `start` on, in place; the last one may be shorter."""
    count, wide = keys.shape
    end = start + (wide - start) // window * window
    keys[:, start:end].reshape(count, -1, window).sort(axis=-1)
    keys[:, end:].sort(axis=-1)


def _grain(length: int, pieces: int, size: int) -> int:
    """How many keys are dealt at once: as many as two rounds of windows bring in order."""
    grains = [grain for grain in (2, 4) if grain * size in _MOVED]
    return max((grain for grain in grains if _disorder(pieces, grain) <= length // pieces // 2), default=1)


def _disorder(pieces: int, grain: int) -> int:
    """Of how many keys in a row some may be out of order after dealing (of 0 and 1, which suffice to prove a sort).

    Hands differ by one grain for every old piece, so by `pieces` grains, and one grain more is mixed: that many turns.
    """
    return (pieces + 1) * pieces * grain


@cache
def _networks_pay(size: int) -> bool:
    """Whether this processor sorts pieces faster than whole rows: the result is the same, only time is at stake."""
    length, kind = 6 * _NETWORK[size], _KINDS[size]
    keys = np.random.default_rng(0).permutation(np.arange(8 * length, dtype=kind)).reshape(8, length)
    cut, whole = KeyRoom(8, length, kind, 6), KeyRoom(8, length, kind)
    seconds = [(_seconds(cut, keys), _seconds(whole, keys)) for _ in range(5)]
    return min(by_pieces for by_pieces, _ in seconds) < min(at_once for _, at_once in seconds)


def _seconds(room: KeyRoom, keys: Keys) -> float:
    room.keys(len(keys))[:] = keys
    began = time.perf_counter()
    room.sort(len(keys))
    return time.perf_counter() - began
