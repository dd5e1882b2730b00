"""Style balancing (SB) as a layer: every class of a mini-batch in every source domain's style (paper Sec. 4.1)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

import torch
from torch import nn

from styleshift.style.balancing import (
    Rounding,
    Selection,
    balanced,
    expect_choices,
    expect_labels,
    lenders,
    wanted_moves,
)
from styleshift.style.draws import Draws
from styleshift.style.shapes import Features, Labels
from styleshift.style.statistics import style_of

_Step = Callable[["StyleBalancing", Features], Features]
# who moves is different in every batch: a compiler would trace each one anew
_untraced: Callable[[_Step], _Step] = torch.compiler.disable


class StyleBalancing(nn.Module):
    """Moves near-duplicate samples to domains that lack their class, at every forward in training mode.

    It must know the classes and domains of the batch: `with layer.given(classes, domains): model(images)`.

    n_domains: how many source domains there are; left out, the largest id seen so far + 1.
    alpha: of Beta(alpha, alpha), where Eq. 6's lambda is drawn from; the paper takes 0.1.
    selection: "least_missed" as proposed (Algorithm 1), or "random".
    class_agnostic: balance the domains without regard to class, for tasks where nearly every class is alone in a batch.
    rounding: "whole" targets, or "ceil" as Algorithm 1's loop has it.
    detach_style: no gradient to the samples that lend their style.
    generator: where the draws come from; None is torch's own.

    `moved` and `dropped` count the moves made so far, and those into a domain absent from the batch, never made.
    """

    def __init__(
        self,
        n_domains: int | None = None,
        alpha: float = 0.1,
        *,
        selection: Selection = "least_missed",
        class_agnostic: bool = False,
        rounding: Rounding = "whole",
        detach_style: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if (n_domains is not None and n_domains < 1) or not 0 < alpha < inf:
            raise ValueError(f"n_domains is at least 1 and alpha a number above 0; got {n_domains} and {alpha}")
        expect_choices(rounding, selection)
        self.n_domains = n_domains
        self.alpha = alpha
        self.selection = selection
        self.class_agnostic = class_agnostic
        self.rounding = rounding
        self.detach_style = detach_style
        self.draws = Draws(generator)
        self.seen_domains = 0
        self.moved = 0
        self.dropped = 0
        self._labels: tuple[Labels, Labels] | None = None

    @contextmanager
    def given(self, classes: Labels, domains: Labels) -> Iterator["StyleBalancing"]:
        """Inside this block, batches have these classes and domains."""
        expect_labels(classes, domains)
        self.seen_domains = max(self.seen_domains, int(domains.max()) + 1 if len(domains) else 0)
        before, self._labels = self._labels, (classes, domains)
        try:
            yield self
        finally:
            self._labels = before

    def forward(self, features: Features) -> Features:
        return self._balanced(features) if self.training else features

    @_untraced
    def _balanced(self, features: Features) -> Features:
        classes, domains = self._labels_for(features)
        moves = self._moves(features, classes, domains)
        if not moves:
            return features
        samples, to_domains = torch.tensor(moves, device=features.device).unbind(dim=1)
        first, second = lenders(domains.to(features.device), to_domains, self.draws)
        strength = self.draws.beta(self.alpha, len(moves)).to(features.device)
        return balanced(features, samples, first, second, strength, self.detach_style)

    def _moves(self, features: Features, classes: Labels, domains: Labels) -> list[tuple[int, int]]:
        with torch.no_grad():
            phi = style_of(features).phi
        wanted = wanted_moves(
            torch.zeros_like(classes) if self.class_agnostic else classes,
            domains,
            phi,
            self.seen_domains if self.n_domains is None else self.n_domains,
            rounding=self.rounding,
            selection=self.selection,
            draws=self.draws,
        )
        present = set(domains.tolist())
        possible = [(sample, domain) for sample, domain in wanted if domain in present]
        self.moved += len(possible)
        self.dropped += len(wanted) - len(possible)
        return possible

    def _labels_for(self, features: Features) -> tuple[Labels, Labels]:
        if self._labels is None:
            raise RuntimeError(
                "StyleBalancing moves samples between domains, so it must know them: run the model inside "
                "`with layer.given(classes, domains):`, or detach the layer"
            )
        if len(self._labels[0]) != len(features):
            raise ValueError(
                f"the labels given are of {len(self._labels[0])} samples, the features of {len(features)}; "
                "give the labels of this very batch"
            )
        return self._labels

    def extra_repr(self) -> str:
        return f"n_domains={self.n_domains}, alpha={self.alpha}, selection={self.selection!r}"
