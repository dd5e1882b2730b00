"""What a model says of images as it is and with the shift, side by side."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from styleshift.shifted import Seen, ShiftedModel
from styleshift.training.metrics import Predictions, predictions_of


class BeforeAfter(NamedTuple):
    """seen: score, far and nearest source of each image."""

    before: Predictions
    after: Predictions
    seen: Seen


@torch.no_grad()
def before_and_after(model: nn.Module, robust: ShiftedModel, images: Tensor) -> BeforeAfter:
    """Both predictions for `images`; model: the one that `robust` was fitted around, in eval mode."""
    return BeforeAfter(predictions_of(model(images)), predictions_of(robust(images)), robust.explain(images))
