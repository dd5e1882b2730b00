"""SAR: entropy of reliable predictions lowered towards flat minima, with recovery (Niu et al., ICLR 2023).

Reading: the released code forgets the weights on recovery but keeps the moving average that called for it, so that it
recovers again at the next batch; here the average begins anew, too.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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

_KEPT = 0.9  # share of the moving average that stays at every batch


@dataclass(frozen=True)
class SAR:
    """Learns scales and shifts of norms on samples of low entropy, by the gradient at the worst point nearby.

    learning_rate, momentum: of SGD. The paper: 0.00025 and 0.9, for ResNets.
    margin: samples with an entropy under margin · ln K learn. The paper: 0.4.
    rho: radius of the neighbourhood whose worst point is taken. The paper: 0.05.
    recovery: weights are put back once the moving average of the loss falls under this. The paper: 0.2, for 1,000
        classes; of few classes a good model is below it from the start, and 0 switches it off.
    norms: as for Tent. skip: modules whose norms do not learn; the released code's are the last stage and blocks.
    """

    learning_rate: float = 2.5e-4
    momentum: float = 0.9
    margin: float = 0.4
    rho: float = 0.05
    recovery: float = 0.2
    norms: Norms = "auto"
    skip: tuple[str, ...] = ("layer4", "blocks.9", "blocks.10", "blocks.11", "norm")

    sees: ClassVar[Sees] = Sees(other_images=True, earlier_batches=True, updates_weights=True)

    def __post_init__(self) -> None:
        expect_rates(self.learning_rate, self.momentum)
        if not isinstance(self.skip, tuple) or not all(isinstance(name, str) for name in self.skip):
            raise ValueError(f"skip is a tuple of modules' names, as in ('layer4', 'norm'); got {self.skip!r}")

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`; neither styles nor images are looked at."""
        body = body_of(model)
        use_batch_statistics(norms_of(body, self.norms))
        parameters = own_affine(norms_of(body, self.norms, _within(body, self.skip)))
        optimizer = partial(torch.optim.SGD, lr=self.learning_rate, momentum=self.momentum)
        return _Recovering(body, self, Learner(parameters, optimizer))


def _within(body: nn.Module, skip: Sequence[str]) -> tuple[str, ...]:
    """The same names where a model that shifts holds the network as its `model`."""
    return (*skip, *(f"model.{name}" for name in skip))


class _Recovering(Adapted):
    def __init__(self, body: nn.Module, method: SAR, learner: Learner) -> None:
        super().__init__(body, method.sees)
        self.method = method
        self.learner = learner
        self.average: float | None = None

    def reset(self) -> None:
        self.average = None
        self.learner.put_back()

    def _answer(self, images: Tensor) -> Tensor:
        with torch.enable_grad():
            logits = self._logits(images)
            uncertain = entropies(logits)
        margin = self.method.margin * math.log(logits.shape[1])
        reliable = uncertain < margin
        if reliable.any():
            self._learn(images, uncertain, reliable, margin)
        return logits.detach()

    def _learn(self, images: Tensor, uncertain: Tensor, reliable: Tensor, margin: float) -> None:
        with torch.enable_grad():
            gradients = self.learner.gradients(uncertain[reliable].mean())
        with at_worst_point(self.learner.parameters, gradients, self.method.rho), torch.enable_grad():
            again = entropies(self._logits(images))[reliable]
            still = again < margin
            if not still.any():
                return
            loss = again[still].mean()
            gradients = self.learner.gradients(loss)
        self.learner.move(gradients)
        self._follow(loss.item())

    def _follow(self, loss: float) -> None:
        self.average = loss if self.average is None else _KEPT * self.average + (1 - _KEPT) * loss
        if self.average < self.method.recovery:
            self.reset()


@contextmanager
def at_worst_point(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor], rho: float) -> Iterator[None]:
    """The parameters moved by `rho` up the gradient; they are put back, bit by bit, at the end of the block."""
    before = [parameter.detach().clone() for parameter in parameters]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    try:
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.add_(gradient, alpha=rho / (float(norm) + 1e-12))
        torch.clear_autocast_cache()
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)
