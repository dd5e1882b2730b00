"""MixStyle: a sample's style mixed with that of another one in the batch (paper Sec. 3.1)."""

import torch

from styleshift.layers._chance import Chance, expect_correction, expect_positive
from styleshift.layers._partners import Partner, expect_partner, partners
from styleshift.style.draws import Draws
from styleshift.style.mixing import mixstyle
from styleshift.style.shapes import Features


class MixStyle(Chance):
    """Mixes means and deviations with a partner's, in training mode.

    p: probability that a forward mixes; the paper takes 0.5.
    alpha: lambda is drawn from Beta(alpha, alpha), one per sample; the paper takes 0.1.
    partner: "random", or "crossdomain" to swap the two halves of the batch.
    correction: 1 divides variances by HW - 1 as released code does; the paper divides by HW.
    generator: where the draws come from; None is torch's global one.
    """

    def __init__(
        self,
        p: float = 0.5,
        alpha: float = 0.1,
        *,
        partner: Partner = "random",
        correction: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, generator)
        expect_positive(alpha)
        expect_partner(partner)
        expect_correction(correction)
        self.alpha = alpha
        self.partner: Partner = partner
        self.correction = correction

    def restyled(self, features: Features, draws: Draws) -> Features:
        own_share = draws.beta(self.alpha, len(features))
        return mixstyle(features, partners(self.partner, len(features), draws), own_share, self.correction)

    def extra_repr(self) -> str:
        return f"p={self.p}, alpha={self.alpha}, partner={self.partner!r}"
