"""What the layers that act by chance share: in training they flip a coin, in evaluation they do nothing."""

from abc import ABC, abstractmethod
from math import inf

import torch
from torch import nn

from styleshift.style.draws import Draws
from styleshift.style.shapes import Features


class Chance(nn.Module, ABC):
    """A layer that acts with probability `p` in training mode and never in evaluation mode."""

    def __init__(self, p: float, generator: torch.Generator | None) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p is the probability that {type(self).__name__} acts, in [0, 1]; got {p}")
        self.p = p
        self.draws = Draws(generator)

    def forward(self, features: Features) -> Features:
        if not self.training or not self.draws.coin(self.p):
            return features
        return self.restyled(features, self.draws)

    @abstractmethod
    def restyled(self, features: Features, draws: Draws) -> Features:
        """`features` in the new styles, after the coin fell for it."""

    def extra_repr(self) -> str:
        return f"p={self.p}"


def expect_positive(alpha: float) -> None:
    """Say what is needed if this is not a parameter of a Beta distribution."""
    if not 0 < alpha < inf:
        raise ValueError(f"alpha is the parameter of Beta(alpha, alpha), a number above 0; got {alpha}")


def expect_correction(correction: int) -> None:
    """Say what is needed if this is not a correction of the variance."""
    if correction not in (0, 1):
        raise ValueError(f"correction is 0 (divide by HW, as in Eq. 2) or 1 (by HW - 1); got {correction}")
