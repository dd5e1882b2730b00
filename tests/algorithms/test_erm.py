"""Cross-entropy, by hand."""

import math

import pytest
import torch
from torch import nn

from styleshift.algorithms.erm import ERM
from styleshift.data.batch import Batch

LOGITS = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
BATCH = Batch(LOGITS, torch.tensor([1, 0]), torch.tensor([0, 0]))
FIRST, SECOND = -math.log(3 / 4), -math.log(1 / 2)


def test_the_loss_is_the_mean_cross_entropy() -> None:
    assert float(ERM().loss(nn.Identity(), BATCH)) == pytest.approx((FIRST + SECOND) / 2)


def test_class_weights_weigh_the_mean() -> None:
    weighted = ERM().loss(nn.Identity(), BATCH, torch.tensor([3.0, 1.0]))
    assert float(weighted) == pytest.approx((1 * FIRST + 3 * SECOND) / 4)


def test_half_precision_logits_are_weighed_in_float32() -> None:
    loss = ERM().loss(nn.Identity(), BATCH._replace(images=LOGITS.bfloat16()))
    assert loss.dtype == torch.float32
