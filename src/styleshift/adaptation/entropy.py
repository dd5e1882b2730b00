"""Entropy of predictions, which most test-time methods lower or sort by.

entropies           of every row of logits
marginal_entropy    of the mean prediction of several views of one image
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def entropies(logits: Float[Tensor, "B K"]) -> Float[Tensor, "B"]:
    """Entropy in nats of every row's softmax, in float32 at least."""
    logs = _wide(logits).log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)


def marginal_entropy(logits: Float[Tensor, "V K"]) -> Float[Tensor, ""]:
    """Entropy in nats of the mean over views of their softmax."""
    logs = _wide(logits).log_softmax(dim=1).logsumexp(dim=0) - math.log(len(logits))
    return -(logs.exp() * logs).sum()


def _wide(logits: Tensor) -> Tensor:
    return logits.to(torch.float32) if logits.dtype.itemsize < 4 else logits
