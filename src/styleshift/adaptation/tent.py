"""Tent: entropy of the predictions lowered batch by batch (Wang et al., ICLR 2021).

Reading: the released code puts the whole model into train mode, its dropout too; here the normalisation layers alone
use a batch's statistics, and the rest stays in eval mode. So a model that shifts (`styleshift.fit`) goes on shifting.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from styleshift.adaptation.entropy import entropies
from styleshift.adaptation.learning import Learner, expect_rates
from styleshift.adaptation.norms import Norms, norms_of, own_affine, use_batch_statistics
from styleshift.adaptation.wrapping import Adapted, Sees, body_of
from styleshift.sources import SourceStyles


@dataclass(frozen=True)
class Tent:
    """Learns the scales and shifts of the normalisation layers; BatchNorm uses the batch's own statistics.

    learning_rate: of Adam. The paper: 1e-3.
    steps: a batch. The paper: 1. The answer is that of the last step's forward, before it learns.
    norms: "batch" learns BatchNorm, as the paper; "layer" LayerNorm and GroupNorm; "auto" the first that there is.
    """

    learning_rate: float = 1e-3
    steps: int = 1
    norms: Norms = "auto"

    sees: ClassVar[Sees] = Sees(other_images=True, earlier_batches=True, updates_weights=True)

    def __post_init__(self) -> None:
        expect_rates(self.learning_rate)
        if self.steps < 1:
            raise ValueError(f"steps is at least 1; got {self.steps}")

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`; neither styles nor images are looked at."""
        body = body_of(model)
        norms = norms_of(body, self.norms)
        use_batch_statistics(norms)
        return _Tented(body, self, Learner(own_affine(norms), partial(torch.optim.Adam, lr=self.learning_rate)))


class _Tented(Adapted):
    def __init__(self, body: nn.Module, method: Tent, learner: Learner) -> None:
        super().__init__(body, method.sees)
        self.steps = method.steps
        self.learner = learner

    def reset(self) -> None:
        self.learner.put_back()

    def _answer(self, images: Tensor) -> Tensor:
        for _ in range(self.steps):
            with torch.enable_grad():
                logits = self._logits(images)
                loss = entropies(logits).mean()
            self.learner.step(loss)
        return logits.detach()
