"""A gate: who is far is decided at one layer, for a shift that stands at a later one (beyond the paper).

    Gate     passes features on as they are, and remembers until the shift asks which samples are far

The shift's `gate=` is this layer: attach(model, {"layer1": gate, "layer2": StyleShifting(sources, gate=gate)}).
"""

import threading
from collections.abc import Callable

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from styleshift.style.shapes import Features, Scores
from styleshift.style.shifting import expect_alpha, far_score
from styleshift.style.statistics import Style
from styleshift.style.whitening import Whitening, widest


class Gate(nn.Module):
    """Decides which samples are far, and changes none.

    sources: the source domains' mean styles at this very layer, `[N, C]` each.
    alpha: how many times the sources' own spread counts as far, at this layer.
    whitening: coordinates in which distances are taken; None takes styles as they are.
    """

    source_mean: Tensor
    source_std: Tensor
    white_matrix: Tensor
    white_centres: Tensor

    def __init__(self, sources: Style, alpha: float = 3.0, whitening: Whitening | None = None) -> None:
        super().__init__()
        expect_alpha(alpha)
        self.alpha = alpha
        self.register_buffer("source_mean", sources.mean.detach().clone())
        self.register_buffer("source_std", sources.std.detach().clone())
        self.register_buffer("white_matrix", None if whitening is None else whitening.matrix.detach().clone())
        self.register_buffer("white_centres", None if whitening is None else whitening.centres.detach().clone())
        self._decisions = _Decisions()

    def forward(self, features: Features) -> Features:
        self._decisions.note(self.scores(features) > self.alpha)
        return features

    def scores(self, features: Features) -> Scores:
        """How far every sample is; above `alpha` it is shifted later."""
        whitening = None if self.white_matrix is None else Whitening(self.white_matrix, self.white_centres)
        return far_score(features, Style(self.source_mean, self.source_std), whitening)

    def decided(self, features: Features) -> Bool[Tensor, "B"]:
        """Which samples this thread's forward called far; `features` are what they have become since."""
        far = self._decisions.here()
        # shapes, not len(): that would tie an exported graph to one batch size
        if far is None or far.shape[0] != features.shape[0]:
            seen = "none" if far is None else f"{far.shape[0]}"
            raise ValueError(
                f"a shift of {features.shape[0]} samples needs a gate that has seen them in the same forward; it has "
                f"seen {seen}. Attach the gate to a layer that runs before the shift's, on the same samples."
            )
        return far.to(features.device)

    def forget(self) -> None:
        """This thread's forward is over."""
        self._decisions.forget()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Gate":
        """Moved with the model, but never rounded with it: half precision has too few digits for a whitening."""

        def moved(tensor: Tensor) -> Tensor:
            there = fn(tensor.float())  # of a kind that every device has
            kind = widest(there.device) if tensor.dtype == torch.float64 else tensor.dtype
            # a place without numbers (meta) gives none
            return there.to(kind) if there.is_meta or tensor.is_meta else tensor.to(there.device, kind)

        super()._apply(moved, recurse)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return self

    def extra_repr(self) -> str:
        return f"{len(self.source_mean)} sources, alpha={self.alpha}"


class _Decisions:
    """What was decided in the forwards under way: one a thread. Copies and pickles start empty."""

    def __init__(self) -> None:
        # Not a threading.local: what compiled code writes there is lost without a word (torch 2.13).
        self._far: dict[int, Tensor] = {}
        # Within one graph nothing is kept from call to call, and a thread's own number would end the graph.
        self._traced: Tensor | None = None

    def note(self, far: Tensor) -> None:
        if torch.compiler.is_compiling():
            self._traced = far
        else:
            self._far[threading.get_ident()] = far

    def here(self) -> Tensor | None:
        return self._traced if torch.compiler.is_compiling() else self._far.get(threading.get_ident())

    def forget(self) -> None:
        if torch.compiler.is_compiling():
            self._traced = None
        else:
            self._far.pop(threading.get_ident(), None)

    def __reduce__(self) -> tuple[type["_Decisions"], tuple[()]]:
        return _Decisions, ()
