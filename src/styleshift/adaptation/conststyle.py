"""ConstStyle's test time: every image moved a part of the way to one unified style (after Tran et al., ICCV 2025).

Reading: the unified style is the barycentre of the source domains' styles, each domain counting the same. ConstStyle
also trains with images in that style, and finds its domains by clustering; this is its test-time half alone, on any
model and with the domains that were given.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from styleshift.adaptation.style_shift import expect_styles
from styleshift.adaptation.wrapping import Adapted, Sees
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles
from styleshift.style.shifting import Variant


@dataclass(frozen=True)
class ConstStyle:
    """Shifts every image, near or far, towards one style.

    fraction: how much of the way, in (0, 1]; 0.5 as in the authors' scripts.
    """

    fraction: float = 0.5

    sees: ClassVar[Sees] = Sees(source_styles=True)

    def __post_init__(self) -> None:
        Variant(everything=True, fraction=self.fraction)

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`; images are not looked at."""
        variant = Variant(everything=True, fraction=self.fraction)
        return Adapted(ShiftedModel(model, unified(expect_styles(styles)), variant=variant), self.sees)


def unified(styles: SourceStyles) -> SourceStyles:
    """All domains as one, each counting the same."""
    mean = styles.mean.mean(dim=0, keepdim=True)
    # a mixture's variance: what its parts have inside, and what lies between them
    variance = (styles.variance + (styles.mean - mean).square()).mean(dim=0, keepdim=True)
    everything = torch.zeros_like(styles.sample_domain)
    counts = styles.counts.sum(dim=0, keepdim=True)
    return SourceStyles(styles.at, ("unified",), counts, mean, variance, styles.sample, everything, styles.sample_key)
