"""Ranks of float32 on the CPU, in numpy.

    sort_rows            every row ascending, and where its values stood
    mix_ranks            a channel's ranks mixed with those of partner samples, put back where the content stood
    mix_ranks_backward   the transposed map of `mix_ranks`

All work is done block by block: what is read in the order of ranks is first copied to where it stays in the processor's
cache, and what is written in that order leaves from there.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from styleshift.style.orders import Numbers, OrderRoom, cut

Places: TypeAlias = NDArray[np.uint16] | NDArray[np.int32]

# numbers that are worth a thread
_WORTH = 1 << 17


def sort_rows(rows: Numbers, ascending: Numbers, places: NDArray[np.int64]) -> None:
    """Write every row's values in ascending order, and the positions they had; ties by position, NaN last."""
    length = rows.shape[1]

    def sort_parts(parts: Sequence[slice]) -> None:
        for part in parts:
            room = OrderRoom(len(rows[part]), length)
            stood = np.empty(rows[part].shape, np.uint32)
            room.sort(rows[part], ascending[part], stood)
            np.subtract(stood, room.starts, out=places[part], casting="unsafe")

    _share_out(sort_parts, cut(len(rows), length, _WORTH), rows.size)


def mix_ranks(
    values: Numbers, partners: NDArray[np.int64], own_share: Numbers, mixed: Numbers, places: Places | None
) -> None:
    """Write own_share * value + (1 - own_share) * the partner's value of the same rank in the channel.

    values, mixed: `[B, C, n]`, contiguous; partners, own_share: `[B]`.
    places: `[C, B, n]`, receives where each rank stood in its row; None if nobody will ask.
    """
    samples, channels, length = values.shape
    own, others = own_share[:, None], (1 - own_share)[:, None]

    def mix_channels(share: Sequence[int]) -> None:
        room = OrderRoom(samples, length)
        ranked, stood = np.empty((samples, length), np.float32), np.empty((samples, length), np.uint32)
        for channel in share:
            room.sort(values[:, channel], ranked, stood)
            for block in room.blocks:
                blend, lent = room.pair(len(partners[block]))
                np.take(ranked, partners[block], axis=0, out=lent, mode="clip")
                lent *= others[block]
                np.multiply(ranked[block], own[block], out=blend)
                blend += lent
                mixed[block, channel] = _put_back(blend, room.index(stood[block]), lent)
            if places is not None:
                np.subtract(stood, room.starts, out=places[channel], casting="unsafe")

    _share_out(mix_channels, range(channels), values.size)


def mix_ranks_backward(
    gradient: Numbers, partners: NDArray[np.int64], own_share: Numbers, places: Places, by_values: Numbers
) -> None:
    """Write what `values` receive: a gradient of 1 as content, and 1 - own_share as the partner's ranks."""
    samples, channels, length = gradient.shape
    others = 1 - own_share

    def pull_channels(share: Sequence[int]) -> None:
        room = OrderRoom(samples, length)
        own, received = np.empty((samples, length), np.float32), np.empty((samples, length), np.float32)
        lent, stood = np.empty(length, np.float32), np.empty((samples, length), np.uint32)
        for channel in share:
            stood[:] = places[channel]
            stood += room.starts
            for block in room.blocks:
                given, _ = room.pair(len(partners[block]))
                given[:] = gradient[block, channel]
                np.take(given, room.index(stood[block]), out=own[block], mode="wrap")
            received[:] = 0
            for sample, partner in enumerate(partners):
                np.multiply(own[sample], others[sample], out=lent)
                received[partner] += lent
            for block in room.blocks:
                given, spare = room.pair(len(partners[block]))
                np.add(received[block], own[block], out=given)
                by_values[block, channel] = _put_back(given, room.index(stood[block]), spare)

    _share_out(pull_channels, range(channels), gradient.size)


def _put_back(ranked: Numbers, index: NDArray[np.intp], spare: Numbers) -> Numbers:
    """What is in the order of ranks, where it stood in the block."""
    # torch scatters faster than numpy, and along one axis on the thread at hand
    into, where, what = (torch.from_numpy(array.reshape(-1)) for array in (spare, index, ranked))
    into.scatter_(0, where, what)
    return spare


def _share_out(work: Callable[[Sequence[Any]], None], parts: Sequence[Any], numbers: int) -> None:
    """`work` on all parts, on as many threads as torch may use and `numbers` are worth."""
    workers = min(torch.get_num_threads(), len(parts), numbers // _WORTH)
    if workers < 2:
        _silently(work, parts)
        return
    with ThreadPoolExecutor(workers) as pool:
        # numpy lets go of the interpreter inside its loops
        list(pool.map(partial(_silently, work), [parts[first::workers] for first in range(workers)]))


def _silently(work: Callable[[Sequence[Any]], None], share: Sequence[Any]) -> None:
    # infinities and NaN pass without a warning, as in torch; what numpy is told holds for one thread
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        work(share)
