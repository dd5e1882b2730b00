"""One number an image, by which images are chosen: it depends on the image alone, not on where or when it comes.

    image_keys    a hash of every image
    mixed         hashes whose every bit depends on all bits of the given ones

Copies of an image have one hash, and of images that differ almost no two do.
"""

import numpy as np
import torch
from jaxtyping import Int64
from numpy.typing import NDArray
from torch import Tensor


def image_keys(images: Tensor) -> Int64[Tensor, "B"]:
    """One 64-bit hash of every image: a linear form of the bits of some of its numbers, evenly spread, then mixed."""
    numbers = images.flatten(1)
    some = numbers[:, :: max(1, numbers.shape[1] // _HASHED)].detach().float().cpu().contiguous()
    bits = some.numpy().view(np.uint32).astype(np.uint64)
    form = mixed(np.arange(1, bits.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    return torch.from_numpy(mixed(bits @ form).view(np.int64))


_HASHED = 4096


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a key made to depend on all of them (the finaliser of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
