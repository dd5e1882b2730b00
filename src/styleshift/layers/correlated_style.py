"""Correlated style uncertainty (CSU): DSU whose noise follows how the channels' styles vary together.

A successor of DSU; not in the paper.
"""

import torch

from styleshift.layers._chance import Chance, expect_correction, expect_positive
from styleshift.style.draws import Draws
from styleshift.style.mixing import correlated_style
from styleshift.style.shapes import Features
from styleshift.style.statistics import Style


class CorrelatedStyle(Chance):
    """Samples means and deviations with their covariance over channels, in training mode.

    A batch of one passes through.

    p: probability that a forward samples; 0.5 in released code.
    alpha: each sample's strength is drawn from Beta(alpha, alpha); 0.3 in released code.
    correction: 1 divides variances by HW - 1 as released code does; Eq. 2 divides by HW.
    generator: where the draws come from; None is torch's global one.
    """

    def __init__(
        self, p: float = 0.5, alpha: float = 0.3, *, correction: int = 0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(p, generator)
        expect_positive(alpha)
        expect_correction(correction)
        self.alpha = alpha
        self.correction = correction

    def restyled(self, features: Features, draws: Draws) -> Features:
        samples, channels = features.shape[:2]
        strength = draws.beta(self.alpha, samples)
        noise = Style(draws.normal(samples, channels), draws.normal(samples, channels))
        return correlated_style(features, noise, strength, self.correction)

    def extra_repr(self) -> str:
        return f"p={self.p}, alpha={self.alpha}"
