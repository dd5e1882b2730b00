"""Which samples a domain misses least (paper Sec. 4.1 step 2, Eq. 5, Algorithm 1).

Samples of almost the same style do the same for the model, so one of a nearest pair can be spared.

Reading: a chosen sample leaves the candidates; the pseudo-code never removes it, and would choose one pair for ever.
Reading: of a pair i* < j*, min_z d(z, i*) leaves out i* and j* themselves; equal minima, or none where only the pair is
left, take j*, which is the "otherwise" branch as written. Of pairs equally near, the first in row order.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from styleshift.style.shapes import Phi


def least_missed(phi: Phi, count: int) -> list[int]:
    """The `count` samples that are missed least, in order of choice; the one left over comes last."""
    if phi.ndim != 2:
        raise ValueError(f"Algorithm 1 compares one Phi a sample, [B, 2C]; got {list(phi.shape)}")
    samples = len(phi)
    if not 0 <= count <= samples:
        raise ValueError(f"Algorithm 1 chooses between 0 and all of the {samples} samples; asked for {count}")
    distances = _distances_between(phi)
    chosen: list[int] = []
    while len(chosen) < min(count, samples - 1):
        chosen.append(_struck_out(distances))
    if count == samples:
        chosen += set(range(samples)).difference(chosen)
    return chosen


def _distances_between(phi: Phi) -> NDArray[np.float64]:
    """d_ij of Eq. 5 for i != j; infinite on the diagonal."""
    points = phi.detach().to("cpu", torch.float64)
    # differences, not |a|² - 2ab + |b|²: that form loses the nearest pairs to rounding
    distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").numpy()
    np.nan_to_num(distances, copy=False, nan=_FARTHEST, posinf=_FARTHEST)
    np.fill_diagonal(distances, np.inf)
    return distances


# a sample whose style is not a number is nobody's duplicate, but a candidate all the same
_FARTHEST = float(np.finfo(np.float64).max)


def _struck_out(distances: NDArray[np.float64]) -> int:
    """The sample that goes next; from now on it is infinitely far from all."""
    first, second = divmod(int(distances.argmin()), len(distances))
    others = np.delete(distances[[first, second]], [first, second], axis=1)
    nearest_other = others.min(axis=1, initial=np.inf)
    chosen = first if nearest_other[0] < nearest_other[1] else second
    distances[chosen, :] = distances[:, chosen] = np.inf
    return chosen
