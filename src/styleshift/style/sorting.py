"""Sorting float32 on the CPU: one pass of numpy's vectorised sort over 64-bit keys that hold a value and its position.

    sort_rows            every row ascending, and where its values stood
    mix_ranks            a channel's ranks mixed with those of partner samples, put back where the content stood
    mix_ranks_backward   the transposed map of `mix_ranks`

A key is unique, so the fast unstable sort is stable, and sorting the keys sorts values and positions at once. All work
is done block by block in room that is allocated once: a block stays in the processor's cache from first pass to last.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float32]
Places: TypeAlias = NDArray[np.uint16] | NDArray[np.int32]

# numbers in a block: a MiB of keys
_BLOCK = 1 << 17
_MAGNITUDE = np.int32(0x7FFFFFFF)
# what -inf becomes; subtracted, it makes -inf the smallest key, and NaN of either sign the largest
_LOWEST = np.int32(-0x7F800001)
_NAN = np.uint32(0x7FC00000 + 0x7F800001)


def sort_rows(rows: Numbers, ascending: Numbers, places: NDArray[np.int64]) -> None:
    """Write every row's values in ascending order, and the positions they had; ties by position, NaN last."""
    count, length = rows.shape
    positions = np.arange(length, dtype=np.uint32)

    def sort_blocks(blocks: Sequence[slice]) -> None:
        room = _Room(_longest(blocks), length)
        for block in blocks:
            places[block] = room.sort(rows[block], positions, ascending[block])

    _share_out(sort_blocks, _blocks(count, length), rows.size)


def mix_ranks(
    values: Numbers, partners: NDArray[np.int64], own_share: Numbers, mixed: Numbers, places: Places | None
) -> None:
    """Write own_share * value + (1 - own_share) * the partner's value of the same rank in the channel.

    values, mixed: `[B, C, n]`, contiguous; partners, own_share: `[B]`.
    places: `[C, B, n]`, receives where each rank stood in its row; None if nobody will ask.
    """
    samples, channels, length = values.shape
    starts = _starts_in_batch(values)
    positions = (starts + np.arange(length)).astype(np.uint32)
    blocks = _blocks(samples, length)
    own, others = own_share[:, None], (1 - own_share)[:, None]

    def mix_channels(share: Sequence[int]) -> None:
        room = _Room(_longest(blocks), length)
        ranked, index = np.empty((samples, length), np.float32), np.empty((samples, length), np.intp)
        for channel in share:
            for block in blocks:
                index[block] = room.sort(values[block, channel], positions[block], ranked[block])
            out = mixed.reshape(-1)[channel * length :]
            for block in blocks:
                blend, lent = room.pair(len(partners[block]))
                np.take(ranked, partners[block], axis=0, out=lent, mode="clip")
                lent *= others[block]
                np.multiply(ranked[block], own[block], out=blend)
                blend += lent
                out[index[block].reshape(-1)] = blend.reshape(-1)
            if places is not None:
                np.subtract(index, starts, out=places[channel], casting="unsafe")

    _share_out(mix_channels, range(channels), values.size)


def mix_ranks_backward(
    gradient: Numbers, partners: NDArray[np.int64], own_share: Numbers, places: Places, by_values: Numbers
) -> None:
    """Write what `values` receive: a gradient of 1 as content, and 1 - own_share as the partner's ranks."""
    samples, channels, length = gradient.shape
    starts = _starts_in_batch(gradient)
    others = 1 - own_share

    def pull_channels(share: Sequence[int]) -> None:
        own, received = np.empty((samples, length), np.float32), np.empty((samples, length), np.float32)
        index = np.empty((samples, length), np.intp)
        for channel in share:
            np.add(places[channel], starts, out=index)
            given = gradient.reshape(-1)[channel * length :]
            received[:] = 0
            for sample, partner in enumerate(partners):
                np.take(given, index[sample], out=own[sample], mode="clip")
                received[partner] += others[sample] * own[sample]
            received += own
            by_values.reshape(-1)[channel * length :][index.reshape(-1)] = received.reshape(-1)

    _share_out(pull_channels, range(channels), gradient.size)


class _Room:
    """Where blocks of at most `count` rows are sorted; what it gives is overwritten by the next block."""

    def __init__(self, count: int, length: int) -> None:
        self._keys = np.empty((count, length), np.uint64)
        self._first, self._second = np.empty((2, count, length), np.float32)

    def sort(self, values: Numbers, positions: NDArray[np.uint32], ascending: Numbers) -> NDArray[np.uint32]:
        """Write the rows' values in ascending order; the positions that belong to them."""
        keys = self._keys[: len(values)]
        numbers, spare = self.pair(len(values))
        value_halves, position_halves = _halves(keys)
        np.add(values, np.float32(0), out=numbers)  # -0 + 0 is 0
        value_halves[:] = _ordered(numbers, spare)
        position_halves[:] = positions
        keys.sort(axis=-1)
        np.add(value_halves.view(np.int32), _LOWEST, out=ascending.view(np.int32))
        _flip_negative(ascending, spare)
        return position_halves

    def pair(self, count: int) -> tuple[Numbers, Numbers]:
        """Two free arrays of `count` rows."""
        return self._first[:count], self._second[:count]


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


def _starts_in_batch(values: Numbers) -> NDArray[np.intp]:
    """Where every sample's values of the first channel start in the batch, `[B, 1]`."""
    samples, channels, length = values.shape
    starts: NDArray[np.intp] = np.arange(samples) * (channels * length)
    return starts[:, None]


def _blocks(count: int, length: int) -> list[slice]:
    """`count` rows, cut into blocks."""
    step = max(1, _BLOCK // max(1, length))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _longest(blocks: Sequence[slice]) -> int:
    return max(int(block.stop - block.start) for block in blocks)


def _share_out(work: Callable[[Sequence[Any]], None], parts: Sequence[Any], numbers: int) -> None:
    """`work` on all parts, on as many threads as torch may use and `numbers` are worth."""
    workers = min(torch.get_num_threads(), len(parts), numbers // _BLOCK)
    if workers < 2:
        _silently(work, parts)
        return
    with ThreadPoolExecutor(workers) as pool:
        # numpy lets go of the interpreter inside its loops
        list(pool.map(partial(_silently, work), [parts[first::workers] for first in range(workers)]))


def _silently(work: Callable[[Sequence[Any]], None], share: Sequence[Any]) -> None:
    # infinities and NaN pass without a warning, as in torch; what numpy is told holds for one thread
    with np.errstate(invalid="ignore", over="ignore"):
        work(share)
