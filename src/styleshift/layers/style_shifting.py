"""Test-time style shifting (TS) as a layer: Eqs. 7-8 with the sources' styles it remembers (paper Sec. 4.2)."""

from typing import Literal

from torch import Tensor, nn

from styleshift.layers._gating import Gate
from styleshift.style.shapes import Features, Scores
from styleshift.style.shifting import Variant, expect_alpha, far_score, shifted_as
from styleshift.style.statistics import Style

Active = Literal["eval", "always"]


class StyleShifting(nn.Module):
    """Renders samples that are far from the sources in the nearest source's style.

    sources: the source domains' mean styles at this very layer, `[N, C]` each.
    alpha: how many times the sources' own spread counts as far. 0 shifts every sample; the paper takes 3 for
        classification, 5 for retrieval, 2 for pseudo-domains.
    active: "eval" acts in eval mode only; "always" also in training mode, which some test-time methods run in.
    variant: "ts" as proposed; "all" shifts near samples too; "sampled" goes to the nearest training sample;
        "soft" to the mixture of sources; "partial" a part of the way; or a `Variant`.
    samples: styles of training samples, which "sampled" chooses from.
    gate: a layer before this one in the same network, which decides in this one's place who is far.
    """

    source_mean: Tensor
    source_std: Tensor
    sample_mean: Tensor
    sample_std: Tensor

    def __init__(
        self,
        sources: Style,
        alpha: float = 3.0,
        active: Active = "eval",
        variant: str | Variant = "ts",
        samples: Style | None = None,
        gate: Gate | None = None,
    ) -> None:
        super().__init__()
        expect_alpha(alpha)
        if active not in ("eval", "always"):
            raise ValueError(f"active is 'eval' or 'always'; got {active!r}")
        self.alpha = alpha
        self.active = active
        self.variant = Variant.named(variant)
        _expect_styles(sources, samples, self.variant)
        self.register_buffer("source_mean", sources.mean.detach().clone())
        self.register_buffer("source_std", sources.std.detach().clone())
        self.register_buffer("sample_mean", samples.mean.detach().clone() if samples else None)
        self.register_buffer("sample_std", samples.std.detach().clone() if samples else None)
        self.gate = gate

    @property
    def sources(self) -> Style:
        """The source domains' mean styles."""
        return Style(self.source_mean, self.source_std)

    @property
    def samples(self) -> Style | None:
        """The training samples' styles that "sampled" chooses from."""
        return None if self.sample_mean is None else Style(self.sample_mean, self.sample_std)

    def forward(self, features: Features) -> Features:
        if self.training and self.active == "eval":
            return features
        far = None if self.gate is None else self.gate.decided(features)
        return shifted_as(self.variant, features, self.sources, self.alpha, self.samples, far)

    def scores(self, features: Features) -> Scores:
        """How far every sample is; above `alpha` it is shifted, where no gate decides."""
        return far_score(features, self.sources)

    def extra_repr(self) -> str:
        return f"{len(self.source_mean)} sources, alpha={self.alpha}, active={self.active!r}, {self.variant}"


def _expect_styles(sources: Style, samples: Style | None, variant: Variant) -> None:
    if samples is None and variant.to == "sampled":
        raise ValueError("variant 'sampled' shifts to training samples: give their styles as `samples`")
    if samples is not None and (samples.mean.shape[1:] != sources.mean.shape[1:] or not len(samples.mean)):
        raise ValueError(
            f"samples is a Style of at least one training sample, with as many channels as the sources; got "
            f"{list(samples.mean.shape)} beside {list(sources.mean.shape)}"
        )
    if sources.mean.ndim != 2 or sources.mean.shape != sources.std.shape or 0 in sources.mean.shape:
        raise ValueError(
            f"sources is a Style of [N, C] with at least one domain; got mean {list(sources.mean.shape)} and std "
            f"{list(sources.std.shape)}"
        )
    if not (sources.mean.isfinite().all() and sources.std.isfinite().all()):
        raise ValueError("the sources' styles hold NaN or infinity; measure them again on images the model can take")
