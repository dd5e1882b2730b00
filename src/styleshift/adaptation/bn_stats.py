"""BatchNorm statistics of the test images, alone or mixed with the sources'; nothing is learned.

    share=1        the test batch's alone (Nado et al., 2020)
    share=NUMBER   a fixed mixture, known as alpha-BN (You et al., 2021)
    share=None     n / (N + n) of the batch's, with N = `prior` images' worth of the sources' (Schneider et al., 2020)

Reading: the variance is the biased one, so that share=1 is BatchNorm as in training.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from styleshift.adaptation.norms import mix_statistics, norms_of
from styleshift.adaptation.wrapping import Adapted, Sees, body_of
from styleshift.sources import SourceStyles


@dataclass(frozen=True)
class BNStats:
    """Normalises by the batch's statistics, mixed with those of the sources.

    share: of the batch's statistics, in [0, 1]; None takes n / (prior + n) for a batch of n images.
    prior: how many images the sources' statistics count as, where share is None. 16, as MEMO takes it.
    """

    share: float | None = None
    prior: float = 16.0

    sees: ClassVar[Sees] = Sees(other_images=True)

    def __post_init__(self) -> None:
        if self.share is not None and not 0 <= self.share <= 1:
            raise ValueError(f"share is the test batch's part of the statistics, in [0, 1], or None; got {self.share}")
        if not self.prior >= 0:
            raise ValueError(f"prior is a number of images, at least 0; got {self.prior}")

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`; neither styles nor images are looked at."""
        body = body_of(model)
        mix_statistics(norms_of(body, "batch"), self.share, self.prior)
        return Adapted(body, self.sees)
