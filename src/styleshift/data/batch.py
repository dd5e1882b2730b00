"""A mini-batch: what the images show (classes) and where they come from (domains)."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """What one training step sees.

    images: ``[B, 3, H, W]`` float, normalised.
    classes: ``[B]`` int64, 0..K-1.
    domains: ``[B]`` int64, 0..N-1.
    """

    images: Tensor
    classes: Tensor
    domains: Tensor
