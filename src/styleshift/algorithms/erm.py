"""Empirical risk minimisation: the cross-entropy of the batch, which all of the paper's main tables train with."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from styleshift.data.batch import Batch


@dataclass(frozen=True)
class ERM:
    """Learns from a batch by its mean cross-entropy."""

    def loss(self, model: nn.Module, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """The scalar to minimise.

        batch: images `[B, 3, H, W]`, classes `[B]`, domains `[B]`.
        weights: one positive weight per class `[K]`, or None for equal ones.

        Reading: with weights the mean is a weighted one (divided by the weights of the batch's samples), as torch does.
        """
        # float32 also under bfloat16 autocast: eight bits of mantissa are too few for a softmax
        logits = model(batch.images).to(torch.float32)
        return F.cross_entropy(logits, batch.classes, weight=weights)
