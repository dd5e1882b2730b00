"""DSU: styles sampled around each sample's own, as uncertain as styles are over the batch (paper Sec. 3.1)."""

import torch

from styleshift.layers._chance import Chance, expect_correction
from styleshift.style.draws import Draws
from styleshift.style.mixing import dsu
from styleshift.style.shapes import Features
from styleshift.style.statistics import Style


class DSU(Chance):
    """Samples means and deviations, in training mode. A batch of one passes through.

    p: probability that a forward samples; the paper takes 0.5.
    correction: 1 divides variances by HW - 1 as released code does; the paper divides by HW.
    generator: where the draws come from; None is torch's global one.
    """

    def __init__(self, p: float = 0.5, *, correction: int = 0, generator: torch.Generator | None = None) -> None:
        super().__init__(p, generator)
        expect_correction(correction)
        self.correction = correction

    def restyled(self, features: Features, draws: Draws) -> Features:
        samples, channels = features.shape[:2]
        noise = Style(draws.normal(samples, channels), draws.normal(samples, channels))
        return dsu(features, noise, self.correction)
