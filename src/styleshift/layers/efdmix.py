"""EFDMix: a sample's values mixed with those of the same rank in another one of the batch (paper Sec. 3.1)."""

import torch

from styleshift.layers._chance import Chance, expect_positive
from styleshift.layers._partners import Partner, expect_partner, partners
from styleshift.style.draws import Draws
from styleshift.style.mixing import efdmix
from styleshift.style.shapes import Features


class EFDMix(Chance):
    """Mixes whole distributions with a partner's, value by value, in training mode.

    p: probability that a forward mixes; the paper takes 0.5.
    alpha: lambda is drawn from Beta(alpha, alpha), one per sample; the paper takes 0.1.
    partner: "random", or "crossdomain" to swap the two halves of the batch.
    generator: where the draws come from; None is torch's global one.
    """

    def __init__(
        self,
        p: float = 0.5,
        alpha: float = 0.1,
        *,
        partner: Partner = "random",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, generator)
        expect_positive(alpha)
        expect_partner(partner)
        self.alpha = alpha
        self.partner: Partner = partner

    def restyled(self, features: Features, draws: Draws) -> Features:
        own_share = draws.beta(self.alpha, len(features))
        return efdmix(features, partners(self.partner, len(features), draws), own_share)

    def extra_repr(self) -> str:
        return f"p={self.p}, alpha={self.alpha}, partner={self.partner!r}"
