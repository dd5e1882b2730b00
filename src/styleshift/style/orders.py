"""The order of float32 rows, block by block: -inf first, NaN last, -0 equal to 0, ties by position.

    OrderRoom   where blocks of rows are sorted

A key holds a value and its position: it is unique, so that a fast unstable sort is stable, and gives values and
positions at once. Exact keys have 64 bits. Rows of middle length are first sorted by coarse keys of 32 bits, in which
a value is one of about a million steps from the row's smallest to its largest. Values of one step may then be in the
wrong order; where they are few, neighbours change places. Rows with many (heavy tails, infinities, NaN) are sorted by
exact keys. All passes work in room that is allocated once, so that a block stays in the processor's cache.
"""

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from styleshift.style.columnsort import KeyRoom, pieces_for

Numbers: TypeAlias = NDArray[np.float32]
Positions: TypeAlias = NDArray[np.uint32]
Index: TypeAlias = NDArray[np.intp]

# numbers in a block: all that is known of them at once takes a MiB or two
_BLOCK = 1 << 16
# shorter rows are sorted fast by exact keys, longer ones leave too few bits for the value
_COARSE_LENGTHS = range(257, 4097)
# of so many neighbours one pair in the wrong order is too many
_PAIRS = 32
_EXCHANGES = 8
# from here to its double, floats are whole numbers, written in their lowest bits
_WHOLE = np.float32(1 << 23)
_MAGNITUDE = np.int32(0x7FFFFFFF)
# what -inf becomes; subtracted, it makes -inf the smallest key, and NaN of either sign the largest
_LOWEST = np.int32(-0x7F800001)
_NAN = np.uint32(0x7FC00000 + 0x7F800001)


class OrderRoom:
    """Room to sort up to `count` rows, and to pass over them in blocks that stay in the cache.

    blocks: the rows of each.
    starts: where each row starts in its block, `[count, 1]`.
    """

    def __init__(self, count: int, length: int) -> None:
        self.blocks = cut(count, length, _BLOCK)
        step = self.blocks[0].stop
        self.starts = (np.arange(count, dtype=np.uint32) % np.uint32(step) * np.uint32(length))[:, None]
        self._numbers, self._spare = np.empty((2, step, length), np.float32)
        self._index = np.empty((step, length), np.intp)
        self._exact = _ExactKeys(step, length)
        self._coarse = _CoarseKeys(step, length) if length in _COARSE_LENGTHS else None
        # channels of one batch are alike: after so many in vain, coarse keys are given up
        self._attempts = 2

    def sort(self, values: Numbers, ascending: Numbers, stood: Positions) -> None:
        """Write the rows' values in ascending order, and where in the block each stood; ties by position."""
        for block in self.blocks:
            numbers, spare = self.pair(len(values[block]))
            np.add(values[block], np.float32(0), out=numbers)  # -0 + 0 is 0
            if self._coarse is None:
                self._exact.sort(numbers, spare, ascending[block], stood[block])
            else:
                self._coarse.sort(numbers, spare, stood[block])
                stood[block] += self.starts[: len(numbers)]
                np.take(numbers, self.index(stood[block]), out=ascending[block], mode="wrap")
        if self._coarse is not None:
            unsettled = _settle(ascending, stood)
            self._sort_exactly(unsettled, values, ascending, stood)
            self._attempts -= 2 * len(unsettled) > len(values)
            if self._attempts == 0:
                self._coarse = None

    def index(self, stood: Positions) -> Index:
        """The same positions, as numpy takes them for an index at once."""
        index = self._index[: len(stood)]
        index[:] = stood
        return index

    def pair(self, count: int) -> tuple[Numbers, Numbers]:
        """Two free arrays of `count` rows, no more than a block has."""
        return self._numbers[:count], self._spare[:count]

    def _sort_exactly(self, rows: Index, values: Numbers, ascending: Numbers, stood: Positions) -> None:
        for some in cut(len(rows), values.shape[1], _BLOCK):
            chosen = rows[some]
            found, origins = np.empty((len(chosen), values.shape[1]), np.float32), stood[chosen]
            self._exact.sort(values[chosen] + np.float32(0), self._spare[: len(chosen)], found, origins)
            ascending[chosen] = found
            stood[chosen] = origins - self.starts[: len(chosen)] + self.starts[chosen]


def cut(count: int, length: int, most: int) -> list[slice]:
    """`count` rows, in blocks of at most so many numbers, or of one row."""
    step = max(1, most // max(1, length))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


class _ExactKeys:
    """The bits of a value above its position in the block."""

    def __init__(self, count: int, length: int) -> None:
        self._room = KeyRoom(count, length, np.uint64, pieces_for(length, np.uint64))
        self._positions = np.arange(count * length, dtype=np.uint32).reshape(count, length)

    def sort(self, numbers: Numbers, spare: Numbers, ascending: Numbers, stood: Positions) -> None:
        """Write values in order and where in the block they stood; `numbers` are spent."""
        count = len(numbers)
        keys = self._room.keys(count)
        value_halves, position_halves = _halves(keys)
        value_halves[:] = _ordered(numbers, spare)
        position_halves[:] = self._positions[:count]
        self._room.sort(count)
        stood[:] = position_halves
        np.add(value_halves.view(np.int32), _LOWEST, out=ascending.view(np.int32))
        _flip_negative(ascending, spare)


class _CoarseKeys:
    """The step of a value, from the row's smallest to its largest, above its position in the row."""

    def __init__(self, count: int, length: int) -> None:
        self._room = KeyRoom(count, length, np.uint32, pieces_for(length, np.uint32))
        self._positions = np.arange(length, dtype=np.uint32)
        self._bits = np.uint32((length - 1).bit_length())
        self._steps = np.float32((1 << 32 - int(self._bits)) - 2)

    def sort(self, numbers: Numbers, spare: Numbers, places: Positions) -> None:
        """Write the positions in the row, in order of step."""
        count = len(numbers)
        keys = self._room.keys(count)
        lowest = numbers.min(axis=-1, keepdims=True)
        spread = numbers.max(axis=-1, keepdims=True) - lowest
        np.subtract(numbers, lowest, out=spare)
        # NaN and infinity, as in a constant row, come to one step, as good as any
        spare *= self._steps / spread
        spare += _WHOLE
        # pushes out what stands above the step
        np.left_shift(spare.view(np.uint32), self._bits, out=keys)
        keys |= self._positions
        self._room.sort(count)
        np.bitwise_and(keys, (np.uint32(1) << self._bits) - np.uint32(1), out=places)


def _settle(ascending: Numbers, stood: Positions) -> Index:
    """Exchange neighbours in the wrong order, where they are few; the rows that are not in order after that.

    Equal values are of one step, so by position already; no exchange takes one past the other.
    """
    count, length = ascending.shape
    values = ascending.reshape(-1)
    in_order, lost = np.ones(ascending.shape, bool), np.zeros(count, bool)
    # NaN is in order with nothing
    np.less_equal(ascending[:, :-1], ascending[:, 1:], out=in_order[:, :-1])
    if in_order.size - np.count_nonzero(in_order) > in_order.size // _PAIRS:
        # spares to list them all
        lost = in_order.sum(axis=-1, dtype=np.uint16) < length - length // _PAIRS
        in_order[lost] = True
    wrong = np.flatnonzero(~in_order)
    lost |= np.bincount(wrong // length, minlength=count) > length // _PAIRS
    wrong = wrong[~lost[wrong // length]]
    larger = values[wrong] > values[wrong + 1]
    lost[wrong[~larger] // length] = True
    lost[_exchange(wrong[larger], ascending, stood) // length] = True
    return np.flatnonzero(lost)


def _exchange(wrong: Index, ascending: Numbers, stood: Positions) -> Index:
    """Let values larger than the next change places with it, a few times; those that still are larger."""
    length, values, origins = ascending.shape[1], ascending.reshape(-1), stood.reshape(-1)
    for _ in range(_EXCHANGES):
        if len(wrong) == 0:
            break
        first = wrong[_are_apart(wrong)]
        _swap_with_next(values, first)
        _swap_with_next(origins, first)
        near = np.sort(np.concatenate((first - 1, wrong, first + 1)))
        near = near[near % length < length - 1]
        wrong = near[values[near] > values[near + 1]]
    return wrong


def _are_apart(wrong: Index) -> NDArray[np.bool_]:
    """Of pairs that overlap, only the first; nothing twice."""
    apart = np.ones(len(wrong), bool)
    np.greater(wrong[1:], wrong[:-1] + 1, out=apart[1:])
    return apart


def _swap_with_next(numbers: NDArray[Any], at: Index) -> None:
    numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]


def _ordered(values: Numbers, spare: Numbers) -> NDArray[np.uint32]:
    """The values as whole numbers of the same order, in place; every NaN is one number, the largest."""
    _flip_negative(values, spare)
    bits = values.view(np.int32)
    bits -= _LOWEST
    ordered: NDArray[np.uint32] = values.view(np.uint32)
    np.minimum(ordered, _NAN, out=ordered)
    return ordered


def _flip_negative(values: Numbers, spare: Numbers) -> None:
    """Turn sign and magnitude, as floats are written, into two's complement, as whole numbers are; and back."""
    bits, flip = values.view(np.int32), spare.view(np.int32)
    np.right_shift(bits, 31, out=flip)
    flip &= _MAGNITUDE
    bits ^= flip


def _halves(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The high halves, where the values are, and the low ones with the positions."""
    low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
    halves: NDArray[np.uint32] = keys.view(np.uint32).reshape(*keys.shape, 2)
    return halves[..., high], halves[..., low]
