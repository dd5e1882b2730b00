"""EATA: entropy of samples that are sure and unlike the others lowered, without forgetting (Niu et al., ICML 2022).

    fishers    how much each parameter matters to what the model says of source images

Reading: the released defaults are those for 1,000 classes. With few, nearly every prediction resembles the mean one and
a margin of 0.05 lets nearly nothing learn (so it is with PACS's 7); the authors take 0.4 for the 10 of CIFAR-10.

Without source images nothing pulls the weights back: that is ETA, the authors' name for EATA without its Fisher term.
It is what `eata` means in `styleshift compare` and in recipes, which give none; `benchmarks.streams` gives some.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from styleshift.adaptation.entropy import entropies
from styleshift.adaptation.learning import Learner, expect_rates
from styleshift.adaptation.norms import Norms, norms_of, own_affine, use_batch_statistics
from styleshift.adaptation.wrapping import Adapted, Sees, body_of
from styleshift.sources import SourceStyles

_KEPT = 0.9  # share of the mean prediction that stays at every batch


@dataclass(frozen=True)
class EATA:
    """Learns scales and shifts of norms on sure and dissimilar samples; near the first ones where it has source images.

    learning_rate, momentum: of SGD. The paper: 0.00025 and 0.9.
    margin: samples with an entropy under margin · ln K learn. The paper: 0.4.
    similarity: those whose prediction has a cosine under this with the mean prediction so far. The paper: 0.05.
    fisher: weight of the pull towards the first weights; acts where source images are given. The paper: 2,000.
    fisher_images: how many of them are looked at. The paper: 2,000.
    norms: as for Tent.
    """

    learning_rate: float = 2.5e-4
    momentum: float = 0.9
    margin: float = 0.4
    similarity: float = 0.05
    fisher: float = 2000.0
    fisher_images: int = 2000
    norms: Norms = "auto"

    sees: ClassVar[Sees] = Sees(other_images=True, earlier_batches=True, updates_weights=True)

    def __post_init__(self) -> None:
        expect_rates(self.learning_rate, self.momentum)

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`. images: batches of source images, without labels; None: nothing holds weights back."""
        body = body_of(model)
        norms = norms_of(body, self.norms)
        use_batch_statistics(norms)
        parameters = own_affine(norms)
        learner = Learner(parameters, partial(torch.optim.SGD, lr=self.learning_rate, momentum=self.momentum))
        matter = None if images is None else fishers(body, parameters, images, self.fisher_images)
        return _Filtering(body, self, learner, matter)


class _Filtering(Adapted):
    def __init__(self, body: nn.Module, method: EATA, learner: Learner, matter: list[Tensor] | None) -> None:
        super().__init__(body, replace(method.sees, source_images=matter is not None))
        self.method = method
        self.learner = learner
        self.matter = matter
        self.mean: Tensor | None = None

    def reset(self) -> None:
        self.mean = None
        self.learner.put_back()

    def _answer(self, images: Tensor) -> Tensor:
        with torch.enable_grad():
            logits = self._logits(images)
            uncertain = entropies(logits)
            margin = self.method.margin * math.log(logits.shape[1])
            chosen = self._chosen(logits.detach(), uncertain.detach() < margin)
            if chosen.any():
                # the surer, the heavier; the weight itself is no part of what is lowered
                weight = (margin - uncertain[chosen].detach()).exp()
                loss = (weight * uncertain[chosen]).mean() + self._pull()
                self.learner.step(loss)
        return logits.detach()

    def _chosen(self, logits: Float[Tensor, "B K"], sure: Bool[Tensor, "B"]) -> Bool[Tensor, "B"]:
        """Those that learn; the mean prediction goes on with them."""
        said = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(dim=1)
        if self.mean is not None:
            alike = F.cosine_similarity(self.mean[None], said, dim=1).abs()
            sure = sure & (alike < self.method.similarity)
        if sure.any():
            now = said[sure].mean(dim=0)
            self.mean = now if self.mean is None else _KEPT * self.mean + (1 - _KEPT) * now
        return sure

    def _pull(self) -> Tensor | float:
        if self.matter is None:
            return 0.0
        moved = zip(self.matter, self.learner.parameters, self.learner.first, strict=True)
        return self.method.fisher * torch.stack([(f * (now - first).square()).sum() for f, now, first in moved]).sum()


def fishers(body: nn.Module, parameters: list[nn.Parameter], batches: Iterable[Tensor], most: int) -> list[Tensor]:
    """Squared gradients of the cross-entropy with the model's own predictions, a mean over batches of source images."""
    sums = [torch.zeros_like(parameter) for parameter in parameters]
    seen = count = 0
    for images in batches:
        some = images[: most - seen]
        if not len(some):
            break
        with torch.enable_grad():
            logits = body(some)
            gradients = torch.autograd.grad(F.cross_entropy(logits, logits.argmax(dim=1)), parameters)
        for total, gradient in zip(sums, gradients, strict=True):
            total.add_(gradient.square())
        seen, count = seen + len(some), count + 1
    if not count:
        raise ValueError(
            "EATA was given no source image: `images` gave nothing. Give a fresh iterable, or leave it out"
        )
    return [total / count for total in sums]
