"""T3A: the head replaced by means of test features, adjusted batch by batch (Iwasawa and Matsuo, NeurIPS 2021).

The supports begin as the rows of the head's weights. Each batch adds its features, with the class that the head gives
them; the `filter` of lowest entropy stay in every class, and a feature is compared with their normalised means.

Reading: filter="all" keeps all of them. The released code means to, and drops the support of highest entropy of every
class at every batch instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from styleshift.adaptation.entropy import entropies
from styleshift.adaptation.wrapping import Adapted, Sees, body_of
from styleshift.sources import SourceStyles
from styleshift.twins import Hook

FILTERS: tuple[int | Literal["all"], ...] = (1, 5, 20, 50, 100, "all")  # those that the authors choose among


@dataclass(frozen=True)
class T3A:
    """Classifies by prototypes that the test images move; no gradient, no weight changes.

    filter: how many supports of every class are kept, or "all". The authors choose among 1, 5, 20, 50, 100 and all with
        validation images of the sources.
    head: name of the model's last linear layer; None finds it.
    """

    filter: int | Literal["all"] = 100
    head: str | None = None

    sees: ClassVar[Sees] = Sees(other_images=True, earlier_batches=True)

    def __post_init__(self) -> None:
        if self.filter != "all" and (not isinstance(self.filter, int) or self.filter < 1):
            raise ValueError(
                f"filter is how many supports of a class are kept, at least 1, or 'all'; got {self.filter!r}"
            )

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`; neither styles nor images are looked at."""
        body = body_of(model)
        return _Adjusting(body, self, head_of(body, self.head))


class Supports(NamedTuple):
    """Features, the class that the head gives each, and the entropy of what it says."""

    features: Float[Tensor, "S D"]
    classes: Int64[Tensor, "S"]
    entropy: Float[Tensor, "S"]

    @classmethod
    def of(cls, features: Float[Tensor, "S D"], logits: Float[Tensor, "S K"]) -> "Supports":
        """Of features and what the head says of them."""
        return cls(features, logits.argmax(dim=1), entropies(logits))

    def joined(self, others: "Supports") -> "Supports":
        """These, then the others."""
        return Supports(*(torch.cat(pair) for pair in zip(self, others, strict=True)))

    def filtered(self, keep: int | Literal["all"]) -> "Supports":
        """Of every class the `keep` of lowest entropy, of equal ones those that came first."""
        if keep == "all":
            return self
        order = self.entropy.argsort(stable=True)
        classes = self.classes[order]
        rank = torch.zeros_like(classes)
        for number in set(classes.tolist()):
            own = classes == number
            rank[own] = torch.arange(int(own.sum()), device=rank.device)
        kept = order[rank < keep].sort().values
        return Supports(*(values[kept] for values in self))

    def prototypes(self, n_classes: int) -> Float[Tensor, "K D"]:
        """The normalised mean of every class's normalised features; zeros for a class without a support."""
        directions = F.normalize(self.features, dim=1)
        sums = directions.new_zeros(n_classes, directions.shape[1]).index_add(0, self.classes, directions)
        return F.normalize(sums, dim=1)


class _Adjusting(Adapted):
    def __init__(self, body: nn.Module, method: T3A, head: str) -> None:
        super().__init__(body, method.sees)
        self.filter = method.filter
        self.head_name = head
        self._watch()
        self.supports = self._first()

    @property
    def head(self) -> nn.Linear:
        """What the prototypes are in the place of."""
        head = self.body.get_submodule(self.head_name)
        assert isinstance(head, nn.Linear)
        return head

    def __setstate__(self, state: dict[str, Any]) -> None:
        # a copy's body has a head of its own, and hooks stay with the model they were put on
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch does not annotate it
        self._watch()

    def _watch(self) -> None:
        self.seen = _Seen()
        self.head.register_forward_hook(self.seen)

    def reset(self) -> None:
        self.supports = self._first()

    def _first(self) -> Supports:
        rows = _wide(self.head.weight.detach())
        bias = 0 if self.head.bias is None else _wide(self.head.bias.detach())
        return Supports.of(rows.clone(), rows @ rows.T + bias)

    def _answer(self, images: Tensor) -> Tensor:
        logits = self._logits(images)
        features, said = self.seen.taken()
        _expect_numbers(features, logits)
        if len(features) != len(images) or not torch.equal(said, logits):
            raise ValueError(
                f"T3A replaces the last linear layer, and what it gives ({list(said.shape)}) is not what the model "
                f"gives ({list(logits.shape)}). Name the layer that gives the logits with head="
            )
        self.supports = self.supports.joined(Supports.of(_wide(features), _wide(logits))).filtered(self.filter)
        return _wide(features) @ self.supports.prototypes(logits.shape[1]).T


def _expect_numbers(features: Tensor, logits: Tensor) -> None:
    for name, values in (("features", features), ("logits", logits)):
        if not values.isfinite().all():
            raise ValueError(
                f"T3A compares features, and the {name} of these images hold NaN or infinity. Do the images, or the "
                "weights? What was kept of earlier images stays"
            )


class _Seen(Hook):
    """Notes what the head gets and gives."""

    def __init__(self) -> None:
        self._last: tuple[Tensor, Tensor] | None = None

    def __call__(self, head: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        self._last = (args[0].detach().flatten(1), output.detach())

    def taken(self) -> tuple[Tensor, Tensor]:
        """What came last, once."""
        if self._last is None:
            raise ValueError("the model did not run its last linear layer. Name the layer that gives the logits: head=")
        last, self._last = self._last, None
        return last


def head_of(body: nn.Module, name: str | None) -> str:
    """The name of the linear layer called so, or of the last one that there is."""
    linear = [each for each, module in body.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise ValueError(f"T3A replaces a linear head, and {type(body).__name__} has no linear layer")
    if name is not None and name not in linear:
        raise ValueError(f"there is no linear layer {name!r}; there are {', '.join(linear[-3:])}")
    return linear[-1] if name is None else name


def _wide(values: Tensor) -> Tensor:
    return values.to(torch.float32) if values.dtype.itemsize < 4 else values
