"""Which images an epoch shows, in which batches; and the weights that answer imbalance in the loss instead.

Reading: batches are drawn at random over all sources together. What does not fill a batch at an epoch's end is left out
(another random part every epoch), as the released code does; a set smaller than one batch is one batch.

Reading: over- and undersampling level the classes of the whole training set, the domains taken together: every class
appears as often as the largest (repeats spread evenly), or as the smallest (another random part every epoch).
"""

from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor

Sampling = Literal["random", "oversample", "undersample"]

_EFFECTIVE_BETA = 0.9999  # Cui et al. 2019, the value of their larger sets


def epoch_batches(
    classes: Integer[Tensor, "n"], batch_size: int, sampling: Sampling, generator: torch.Generator
) -> Integer[Tensor, "steps size"]:
    """The rows of each batch of one epoch, in order."""
    rows = _levelled(classes, sampling, generator) if sampling != "random" else torch.arange(len(classes))
    shuffled = rows[torch.randperm(len(rows), generator=generator)]
    size = min(batch_size, len(rows))
    steps = len(rows) // size
    return shuffled[: steps * size].reshape(steps, size)


def steps_per_epoch(classes: Integer[Tensor, "n"], batch_size: int, sampling: Sampling) -> int:
    """How many batches `epoch_batches` gives: the same number in every epoch."""
    sizes = _sizes(classes)
    images = {"random": len(classes), "oversample": max(sizes) * len(sizes), "undersample": min(sizes) * len(sizes)}
    return max(images[sampling] // batch_size, 1)


def effective_number_weights(counts: Integer[Tensor, "K"]) -> Float[Tensor, "K"]:
    """Class weights by the effective number of samples (Cui et al. 2019), (1 - beta) / (1 - beta^n), that sum to K.

    counts: images of each class in the whole training set. A class without any has weight 0.
    """
    present = counts > 0
    inverse = (1 - _EFFECTIVE_BETA) / (1 - _EFFECTIVE_BETA ** counts.to(torch.float64))
    weights = torch.where(present, inverse, 0.0)
    return (weights / weights.sum() * len(counts)).to(torch.float32)


def _sizes(classes: Tensor) -> list[int]:
    """Of the classes that there are."""
    return [size for size in torch.bincount(classes).tolist() if size]


def _levelled(classes: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    sizes = _sizes(classes)
    wanted = max(sizes) if sampling == "oversample" else min(sizes)
    members = [torch.nonzero(classes == which)[:, 0] for which in torch.bincount(classes).nonzero()[:, 0]]
    return torch.cat([_repeated(rows, wanted, generator) for rows in members])


def _repeated(rows: Tensor, wanted: int, generator: torch.Generator) -> Tensor:
    """`wanted` of `rows` at random: none is taken once more before every other was taken as often."""
    rounds = -(-wanted // len(rows))
    return torch.cat([rows[torch.randperm(len(rows), generator=generator)] for _ in range(rounds)])[:wanted]
