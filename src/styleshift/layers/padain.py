"""Permuted AdaIN (pAdaIN): now and then, every sample in the style of another one of the batch (quoted in Table 1).

Reading: the style that is borrowed is held constant, as in released code.
"""

import torch

from styleshift.layers._chance import Chance
from styleshift.style.draws import Draws
from styleshift.style.shapes import Features
from styleshift.style.statistics import style_of
from styleshift.style.transfer import adain


class PAdaIN(Chance):
    """Exchanges styles by a random permutation, in training mode.

    p: probability that a forward does so; released code takes 0.01 in every layer.
    generator: where the draws come from; None is torch's global one.
    """

    def __init__(self, p: float = 0.01, *, generator: torch.Generator | None = None) -> None:
        super().__init__(p, generator)

    def restyled(self, features: Features, draws: Draws) -> Features:
        return adain(features, style_of(features.detach()).rows(draws.permutation(len(features))))
