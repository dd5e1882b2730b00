"""Test-time style shifting (TS) as a test-time method beside the others (paper Sec. 4.2, and its variants).

style_shift    ts, all, sampled, soft, partial: see `styleshift.style.shifting.Variant`
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from styleshift.adaptation.wrapping import Adapted, Sees
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles
from styleshift.style.shifting import Variant, expect_alpha
from styleshift.twins import twin


@dataclass(frozen=True)
class StyleShift:
    """Renders far samples in the nearest source domain's style. It learns nothing and remembers nothing.

    variant: "ts" as proposed, "all", "sampled", "soft", "partial", each possibly with a number ("partial=0.8").
    alpha: how many times the sources' own spread counts as far. The paper takes 3 for classification.
    seed: of the training samples that "sampled" looks among.
    """

    variant: str = "ts"
    alpha: float = 3.0
    seed: int = 0

    sees: ClassVar[Sees] = Sees(source_styles=True)

    def __post_init__(self) -> None:
        Variant.named(self.variant)
        expect_alpha(self.alpha)

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`. A model that `styleshift.fit` gave brings its styles, alpha and variant with it."""
        return Adapted(self.shifted(model, styles), self.sees)

    def shifted(self, model: nn.Module, styles: SourceStyles | None) -> ShiftedModel:
        """A model that shifts, in this way if it did not before."""
        if isinstance(model, ShiftedModel) and styles is None:
            return twin(model)
        return ShiftedModel(model, expect_styles(styles), self.alpha, Variant.named(self.variant), seed=self.seed)


def expect_styles(styles: SourceStyles | None) -> SourceStyles:
    """ValueError, with what to do, if there are none."""
    if styles is None:
        raise ValueError(
            "shifting needs the sources' styles: wrap(model, styles=styleshift.sources_of(model, batches, layer)); "
            "style_shift also wraps a model that styleshift.fit gave"
        )
    return styles
