"""`at="auto"`: which layers shift, and which decides, from the sources alone (beyond the paper).

    with_chosen_layers    styles, layers and threshold, after all ways to shift at some layers have been tried
    layers_to_try         blocks of the network, outermost first, and what comes before them
    ways_to_try           one layer all the way, or a few in a row a part of the way each

Held-out source images are made strange (`strange_looks`), and each way is asked, with each layer that may decide, how
much of the accuracy that is lost on them it brings back, at one and the same share of false shifts. No image of a
target is seen.

Reading: accuracy where the batches come with classes; else agreement with what the model says of the untouched image.
The mean over the looks decides, but for chance: of all within one standard error of the best is taken what decides
first in the network, then what begins to shift first, then what does it in most steps, then what recovers most.
Reading: at most 256 held-out images, those with the smallest hashes, and at most 6 layers. For a ResNet that is about
16 forwards of 1,024 images, whatever there is to fit on.
"""

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from styleshift.attaching import Calls, Place, attach, features_at
from styleshift.calibrating import (
    Calibrated,
    Chosen,
    Keys,
    Reading,
    Styles,
    Tried,
    Wish,
    assembled,
    calibration_of,
    gate_of,
    measured,
    shifting,
)
from styleshift.strange_looks import strange_looks
from styleshift.style.shapes import Scores
from styleshift.style.shifting import Variant
from styleshift.style.statistics import style_of
from styleshift.twins import twin

IMAGES = 256
LAYERS = 6
ROWS = (2, 3)  # layers in a row
FRACTIONS = (0.5, 0.7)  # of the way, at each of them
_BATCH = 64


def with_chosen_layers(
    reading: Reading,
    batches: Iterable[object],
    wish: Wish,
    layers: Sequence[str],
    gate_at: str | None = None,
    variant: Variant | None = None,
    calls: Calls = "every",
) -> Calibrated:
    """What `calibrated` gives for the way to shift, and the layer that decides, that recover most.

    layers: to try, in the order in which they run. gate_at: the one that decides; left out, each in turn.
    """
    variant, kept = variant or Variant(), HeldImages()
    gates = layers if gate_at is None else [gate_at]
    everywhere = list(dict.fromkeys([*gates, *layers]))
    sources, held = measured(reading, batches, wish, everywhere, kept.watch)
    deciding = {gate: gate_of(sources[gate], wish) for gate in gates}
    found = {gate: calibration_of(styles, held, wish) for gate, styles in deciding.items()}
    trial = Trial(reading, sources, deciding, {gate: alpha for gate, (alpha, _) in found.items()}, variant, calls)
    tried = trial.of(ways_to_try(layers, variant), kept, wish.seed)
    best = tried[0]
    _warn_unless_it_helps(max(tried, key=lambda one: one.recovered))
    alpha, calibration = found[best.gate_at]
    return assembled(
        sources,
        best.at,
        deciding[best.gate_at],
        alpha,
        replace(calibration, tried=tuple(tried)),
        replace(variant, fraction=best.fraction),
    )


@dataclass(frozen=True)
class Way:
    """The layers that shift, and how much of the way each of them goes."""

    at: tuple[str, ...]
    fraction: float = 1.0


def ways_to_try(layers: Sequence[str], variant: Variant) -> list[Way]:
    """Each layer alone; and, where no variant is asked for, two or three in a row that go a part of the way each."""
    ways = [Way((layer,), variant.fraction) for layer in layers]
    if variant != Variant():
        return ways
    rows = [tuple(layers[first : first + some]) for some in ROWS for first in range(len(layers) - some + 1)]
    return [*ways, *(Way(row, fraction) for row in rows for fraction in FRACTIONS)]


def layers_to_try(model: nn.Module, found: Sequence[Place], gate_at: str | None = None) -> list[str]:
    """Blocks that can take a shift, outermost ones: all but the deepest, and evenly chosen if there are many.

    Before them stands what comes right before the first: there features differ most by style and least by class.

    found: the model's `places`. gate_at: what decides, if that is settled; only layers from there on can shift.
    """
    first = 0 if gate_at is None else _order(model, found, gate_at)
    good = [place for place in found if not place.last and place.calls == 1 and place.order >= first]
    blocks = [place for place in good if any(model.get_submodule(place.name).children())] or good
    depths = [place.name.count(".") for place in blocks]
    outermost = [place.name for place, depth in zip(blocks, depths, strict=True) if depth == min(depths)]
    if not outermost:
        after = "" if gate_at is None else f" from {gate_at!r} on"
        raise ValueError(
            f"at='auto' found no layer of {type(model).__name__}{after} that can take a shift; name one by at="
        )
    outermost = [*_stem(good, outermost[0]), *outermost]
    if len(outermost) <= LAYERS:
        return outermost
    return [outermost[round(number * (len(outermost) - 1) / (LAYERS - 1))] for number in range(LAYERS)]


def _stem(good: Sequence[Place], block: str) -> list[str]:
    """The last layer before the block, no deeper in the names, if there is one."""
    names = [place.name for place in good if place.name.count(".") <= block.count(".")]
    return names[: names.index(block)][-1:]


def _order(model: nn.Module, found: Sequence[Place], gate_at: str) -> int:
    for place in found:
        if place.name == gate_at and place.calls == 1:
            return place.order
    known = [place.name for place in found]
    near = difflib.get_close_matches(gate_at, known, n=3) or known
    raise KeyError(
        f"{type(model).__name__} has no layer {gate_at!r} that gives maps once in a forward; "
        f"did you mean one of {near}?"
    )


class HeldImages:
    """The held-out images with the smallest hashes: hash, image, and class where it came with one."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Tensor, int | None]] = []
        self.shape: torch.Size | None = None

    def watch(self, batch: object, images: Tensor, keys: Keys, chosen: Chosen) -> None:
        """Keep some of what is held out of this batch; all batches hold images of one shape."""
        self.shape = self.shape or images.shape[1:]
        if images.shape[1:] != self.shape:
            raise ValueError(
                f"at='auto' tries layers on held-out images together, so all need one shape; the first are "
                f"{list(self.shape)}, and these {list(images.shape[1:])}. Resize them, or name a layer by at="
            )
        classes = _classes(batch, len(images))
        rows = chosen.nonzero()[:, 0].tolist()
        found = [(int(keys[row]), images[row].clone(), classes[row]) for row in rows]
        self.rows = sorted([*self.rows, *found], key=lambda row: row[0])[:IMAGES]

    @property
    def images(self) -> Tensor:
        """All of them."""
        return torch.stack([image for _, image, _ in self.rows])

    @property
    def classes(self) -> Int64[Tensor, "n"] | None:
        """None where one is not known."""
        known = [label for _, _, label in self.rows if label is not None]
        return torch.tensor(known) if len(known) == len(self.rows) else None


def _classes(batch: object, count: int) -> Sequence[int | None]:
    """Of (images, classes, domains), where the classes are numbers."""
    if not isinstance(batch, Sequence) or len(batch) != 3:
        return [None] * count
    labels = batch[1].tolist() if isinstance(batch[1], Tensor | np.ndarray) else list(batch[1])
    known = len(labels) == count and all(isinstance(label, int) for label in labels)
    return labels if known else [None] * count


@dataclass(frozen=True)
class Trial:
    """A model, the styles that it is shifted to, those that may decide, their thresholds, and how it is shifted."""

    reading: Reading
    sources: Styles
    deciding: Styles
    alphas: Mapping[str, float]
    variant: Variant
    calls: Calls

    def of(self, ways: Sequence[Way], kept: HeldImages, seed: int) -> list[Tried]:
        """Every way with every layer that may decide it: what is taken, then the others, what recovers most first."""
        body = twin(self.reading.model).eval()
        images = kept.images
        truth = kept.classes
        if truth is None:
            truth = torch.cat([_said(body, some) for some in _parts(images)])
        looks = {
            name: self._look(body, strange, truth, ways, seed) for name, strange in strange_looks(images, seed).items()
        }
        order = list(self.sources)
        pairs = [(gate, way) for way in ways for gate in self.alphas if order.index(gate) <= order.index(way.at[0])]
        tried = sorted((self._tried(gate, way, looks) for gate, way in pairs), key=lambda tried: -tried.recovered)
        taken = min(_as_good(tried), key=lambda one: (order.index(one.gate_at), order.index(one.at[0]), -len(one.at)))
        return [taken, *(one for one in tried if one is not taken)]

    def _look(self, body: nn.Module, images: Tensor, truth: Tensor, ways: Sequence[Way], seed: int) -> "_Look":
        plain = torch.cat([_said(body, some) for some in _parts(images)]) == truth
        scores = [self._scores(body, some) for some in _parts(images)]
        far = {gate: torch.cat([score[gate] for score in scores]) > alpha for gate, alpha in self.alphas.items()}
        return _Look(plain, {way: self._shifted(body, way, images, seed) == truth for way in ways}, far)

    def _scores(self, body: nn.Module, images: Tensor) -> dict[str, Scores]:
        reading, gates = self.reading, list(self.alphas)
        with torch.no_grad():
            found = features_at(body, gates, images, layout=reading.layout, prefix_tokens=reading.prefix_tokens)
            return {gate: self.deciding[gate].scores(style_of(found[gate]).phi).cpu() for gate in gates}

    def _shifted(self, body: nn.Module, way: Way, images: Tensor, seed: int) -> Int64[Tensor, "n"]:
        variant, reading = replace(self.variant, everything=True, fraction=way.fraction), self.reading
        layers = {at: shifting(self.sources[at], 0.0, variant, seed).to(images.device) for at in way.at}
        with attach(body, layers, layout=reading.layout, prefix_tokens=reading.prefix_tokens, calls=self.calls):
            return torch.cat([_said(body, some) for some in _parts(images)])

    def _tried(self, gate: str, way: Way, looks: Mapping[str, "_Look"]) -> Tried:
        gains = {name: look.gains(gate, way) for name, look in looks.items()}
        by_look = {name: float(gain.mean()) for name, gain in gains.items()}
        shifted = fmean(_share(look.far[gate]) for look in looks.values())
        # the looks of one image go with each other, so that images are counted, not looks
        each = torch.stack(list(gains.values())).mean(dim=0)
        error = float(each.std(correction=0)) / len(each) ** 0.5
        return Tried(gate, way.at, way.fraction, self.alphas[gate], shifted, fmean(by_look.values()), error, by_look)


@dataclass(frozen=True)
class _Look:
    """Of every image in one look: whether the plain model is right, whether the model that shifts it in each way is,
    and whether it is far by each gate."""

    plain: Bool[Tensor, "n"]
    shifted: Mapping[Way, Bool[Tensor, "n"]]
    far: Mapping[str, Bool[Tensor, "n"]]

    def gains(self, gate: str, way: Way) -> Float[Tensor, "n"]:
        """Of every image, what the gate lets through less the plain model: 1 if right and not before, -1 if no more."""
        right = torch.where(self.far[gate], self.shifted[way], self.plain)
        return right.double() - self.plain.double()


def _as_good(tried: Sequence[Tried]) -> list[Tried]:
    """All within one standard error of the best, which comes first; if that helps, only what helps as well."""
    best = tried[0]
    near = [one for one in tried if one.recovered >= best.recovered - best.error]
    return [one for one in near if one.recovered > 0] or near


def _said(model: nn.Module, images: Tensor) -> Int64[Tensor, "n"]:
    """The class of every image."""
    with torch.no_grad():
        logits = model(images)
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        given = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"at='auto' compares classes, so the model needs to give logits [B, K]; {type(model).__name__} gives "
            f"{given}. Name a layer by at="
        )
    return logits.argmax(dim=1).cpu()


def _parts(images: Tensor) -> Sequence[Tensor]:
    return torch.split(images, _BATCH)


def _share(right: Bool[Tensor, "n"]) -> float:
    return float(right.double().mean())


def _warn_unless_it_helps(best: Tried) -> None:
    if best.recovered <= 0:
        warnings.warn(
            f"shifting at no layer recovers accuracy on strange renderings of the held-out images; the best, "
            f"{' and '.join(best.at)}, changes it by {best.recovered:+.1%}. This model may be better off as it is.",
            stacklevel=4,
        )
