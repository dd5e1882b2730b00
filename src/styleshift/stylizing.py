"""Style balancing and style augmentation in a training loop of one's own (paper Sec. 4.3, appendix "Other details").

    with styler.batch(classes, domains):
        loss = cross_entropy(model(images), classes)

Reading: in every forward each point flips its coin, in the order in which the points run. Where one succeeds for the
first time, balancing acts and then the augmentation; at later successes the augmentation alone. So with three points
and p = 0.5 balancing acts there in 0.5, 0.25 and 0.125 of the forwards.
Reading: of DSU's six points only those after residual blocks 1-3 carry balancing (the main text says where it acts).
"""

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from styleshift import layers, named
from styleshift.adapting import AskedLayout
from styleshift.attaching import attach
from styleshift.layers.style_balancing import StyleBalancing
from styleshift.style.balancing import Selection
from styleshift.style.draws import Draws
from styleshift.style.shapes import Features, Labels
from styleshift.twins import Hook, expect_open

BLOCKS = ("layer1", "layer2", "layer3")
PUBLISHED_POINTS: Mapping[str, tuple[str, ...]] = {
    "mixstyle": BLOCKS,
    "efdmix": BLOCKS,
    "dsu": ("conv1", "maxpool", *BLOCKS, "layer4"),
}
_FORWARDS_BEFORE_ASKING = 100


class StyleTraining:
    """Balances and augments styles inside `model` while it trains, until `remove()`.

    at: module names after which styles may change; left out, the method's published points (of a ResNet: after blocks
        1-3, for DSU also after conv1, maxpool and block 4; `model.points` where it has them).
    augment: "mixstyle", "efdmix", "dsu", None, or a layer, of which a copy is used.
    balance: whether style balancing acts.
    p: the one coin, flipped at every point in every forward; the paper takes 0.5.
    n_domains: how many source domains there are; left out, the largest id seen so far + 1.
    seed: of every draw made here.
    balance_at: which of the points may carry balancing; left out, all, but of DSU's those after blocks 1-3.
    selection: "least_missed" as the paper proposes, or "random".
    class_agnostic: balance domains without regard to class.
    layout, prefix_tokens: see `attach`.

    `forwards` counts those in training mode, `fired` how often a point acted, `balancing.moved` the samples moved.
    """

    def __init__(
        self,
        model: nn.Module,
        at: Sequence[str] | None = None,
        augment: str | nn.Module | None = "mixstyle",
        balance: bool = True,
        p: float = 0.5,
        n_domains: int | None = None,
        seed: int = 0,
        *,
        balance_at: Sequence[str] | None = None,
        selection: Selection = "least_missed",
        class_agnostic: bool = False,
        layout: AskedLayout = "auto",
        prefix_tokens: int | None = None,
    ) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p is a probability, in [0, 1]; got {p}")
        expect_open(model)
        points = _points(model, at, _method(augment))
        carriers = _carriers(points, _method(augment)) if balance_at is None else tuple(balance_at)
        if unknown := set(carriers) - set(points):
            raise ValueError(f"balancing acts at one of the points {points}; got {sorted(unknown)} in balance_at")
        self.p = p
        self.generator = torch.Generator().manual_seed(seed)
        self.draws = Draws(self.generator)
        self.augmentation = _augmentation(augment, self.draws)
        self.balancing = (
            StyleBalancing(n_domains, selection=selection, class_agnostic=class_agnostic, generator=self.generator)
            if balance
            else None
        )
        self.fired = 0
        self.forwards = 0
        self._inside = False
        self._balanced = False
        self._said = False
        self._attachment = attach(
            model,
            {name: _Point(self, carries=name in carriers) for name in points},
            layout=layout,
            prefix_tokens=prefix_tokens,
        )
        self._counting = (model.register_forward_pre_hook(_Begin(self)), model.register_forward_hook(_End(self)))

    @contextmanager
    def batch(self, classes: Labels, domains: Labels) -> Iterator[None]:
        """Inside this block, batches have these classes and domains: integers from 0, one a sample."""
        before, self._inside = self._inside, True
        try:
            if self.balancing is None:
                yield
            else:
                with self.balancing.given(classes, domains):
                    yield
        finally:
            self._inside = before

    def remove(self) -> None:
        """Take everything off: the model is as it came. A second time does nothing."""
        self._attachment.remove()
        for handle in self._counting:
            handle.remove()
        self._say_if_nothing_fired()

    def state_dict(self) -> dict[str, Any]:
        """What the next draws depend on, to go on exactly from here."""
        seen = self.balancing.seen_domains if self.balancing else 0
        return {"generator": self.generator.get_state(), "fired": self.fired, "forwards": self.forwards, "seen": seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.generator.set_state(state["generator"])
        self.fired, self.forwards = int(state["fired"]), int(state["forwards"])
        if self.balancing:
            self.balancing.seen_domains = int(state["seen"])

    def _acted_on(self, features: Features, carries: bool) -> Features:
        if not self._inside or not self.draws.coin(self.p):
            return features
        self.fired += 1
        if self.balancing is not None and carries and not self._balanced:
            self._balanced = True
            features = self.balancing(features)
        return features if self.augmentation is None else self.augmentation(features)

    def _say_if_nothing_fired(self) -> None:
        if self.fired or self._said or self.p == 0:
            return
        self._said = True
        warnings.warn(
            f"no style layer acted in {self.forwards} training forwards. Run the model in train mode and inside "
            "`with styler.batch(classes, domains):`, and check that its forward runs the modules named in `at`.",
            stacklevel=3,
        )


@dataclass(eq=False)
class _Begin(Hook):
    """Before a forward of the whole model."""

    styler: StyleTraining

    def __call__(self, model: nn.Module, inputs: tuple[object, ...]) -> None:
        self.styler._balanced = False


@dataclass(eq=False)
class _End(Hook):
    """After a forward of the whole model."""

    styler: StyleTraining

    def __call__(self, model: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        self.styler.forwards += model.training
        if self.styler.forwards == _FORWARDS_BEFORE_ASKING:
            self.styler._say_if_nothing_fired()


class _Point(nn.Module):
    """One place in the network where styles may change."""

    def __init__(self, styler: StyleTraining, carries: bool) -> None:
        super().__init__()
        self.styler = styler
        self.carries = carries

    def forward(self, features: Features) -> Features:
        return self.styler._acted_on(features, self.carries) if self.training else features


def _method(augment: str | nn.Module | None) -> str:
    """The augmentation's name, which is its file's name; balancing alone stands where MixStyle does."""
    if augment is None:
        return "mixstyle"
    return augment if isinstance(augment, str) else type(augment).__name__.lower()


def _points(model: nn.Module, at: Sequence[str] | None, method: str) -> tuple[str, ...]:
    if at is not None:
        return (at,) if isinstance(at, str) else tuple(at)
    own = getattr(model, "points", None)
    published = own if isinstance(own, Mapping) else PUBLISHED_POINTS
    points = tuple(published.get(method, BLOCKS))
    known = dict(model.named_modules())
    if missing := [name for name in points if name not in known]:
        raise ValueError(
            f"{method}'s published points are {', '.join(points)}; {type(model).__name__} has no {', '.join(missing)}. "
            "Say with at=(...) after which modules styles may change."
        )
    return points


def _carriers(points: tuple[str, ...], method: str) -> tuple[str, ...]:
    after_blocks = tuple(name for name in points if name in BLOCKS)
    return after_blocks if method == "dsu" and after_blocks else points


def _augmentation(augment: str | nn.Module | None, draws: Draws) -> nn.Module | None:
    if augment is None:
        return None
    layer: Any = named.build(layers, augment) if isinstance(augment, str) else copy.deepcopy(augment)
    if not isinstance(layer, nn.Module):
        raise TypeError(f"augment is a layer's name, a layer or None; got {augment!r}")
    for part in layer.train().modules():
        _leave_chance_to(draws, part)
    return layer


def _leave_chance_to(draws: Draws, part: Any) -> None:
    """One coin and one generator act, both the styler's."""
    if isinstance(getattr(part, "draws", None), Draws):
        part.draws = draws
    # the p of torch's own modules is another: nn.Dropout(1.0) would drop everything
    if hasattr(part, "p") and not type(part).__module__.startswith("torch."):
        part.p = 1.0
