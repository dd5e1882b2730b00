"""`at="auto"`: which layer shifts, and which decides, from the sources alone (beyond the paper).

    with_chosen_layers    styles, layers and threshold, after all pairs of some layers have been tried
    layers_to_try         blocks of the network, outermost first

Held-out source images are made strange (`strange_looks`), and each pair of layers is asked how much of the accuracy
that is lost on them it brings back, at one and the same share of false shifts. No image of a target is seen.

Reading: accuracy where the batches come with classes; else agreement with what the model says of the untouched image.
The mean over the looks decides; of equal pairs the one whose layers come first.
Reading: at most 256 held-out images, those with the smallest hashes, and at most 6 layers. That is about 8 forwards of
1,024 images, whatever there is to fit on.
"""

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Bool, Int64
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
    calibration_of,
    measured,
    without_sample,
)
from styleshift.layers.style_shifting import StyleShifting
from styleshift.strange_looks import strange_looks
from styleshift.style.shapes import Scores
from styleshift.style.shifting import Variant, far_score
from styleshift.twins import twin

IMAGES = 256
LAYERS = 6
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
    """What `calibrated` gives for the pair of layers that recovers most.

    layers: to try, in the order in which they run. gate_at: the one that decides; left out, each in turn.
    """
    kept = HeldImages()
    gates = layers if gate_at is None else [gate_at]
    everywhere = list(dict.fromkeys([*gates, *layers]))
    sources, held = measured(reading, batches, wish, everywhere, kept.watch)
    alphas = {gate: calibration_of(sources, held, wish, gate) for gate in gates}
    trial = Trial(reading, sources, replace(variant or Variant(), everything=True), calls, wish.seed)
    pairs = [(gate, at) for at in layers for gate in gates if everywhere.index(gate) <= everywhere.index(at)]
    tried = trial.of(pairs, {gate: alpha for gate, (alpha, _) in alphas.items()}, kept)
    best = tried[0]
    _warn_unless_it_helps(best)
    alpha, calibration = alphas[best.gate_at]
    gate = None if best.gate_at == best.at else without_sample(sources[best.gate_at])
    return Calibrated(sources[best.at], gate, alpha, replace(calibration, tried=tuple(tried)))


def layers_to_try(model: nn.Module, found: Sequence[Place], gate_at: str | None = None) -> list[str]:
    """Blocks that can take a shift, outermost ones: all but the deepest, and evenly chosen if there are many.

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
    if len(outermost) <= LAYERS:
        return outermost
    return [outermost[round(number * (len(outermost) - 1) / (LAYERS - 1))] for number in range(LAYERS)]


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
    """A model, the styles that it is shifted to, and how."""

    reading: Reading
    sources: Styles
    variant: Variant
    calls: Calls
    seed: int

    def of(self, pairs: Sequence[tuple[str, str]], alphas: Mapping[str, float], kept: HeldImages) -> list[Tried]:
        """All pairs of (gate, shift), the one that recovers most first."""
        body = twin(self.reading.model).eval()
        images = kept.images
        truth = kept.classes
        if truth is None:
            truth = torch.cat([_said(body, some) for some in _parts(images)])
        layers = list(dict.fromkeys(at for _, at in pairs))
        looks = {
            name: self._look(body, strange, truth, layers, alphas)
            for name, strange in strange_looks(images, self.seed).items()
        }
        return sorted((_tried(pair, alphas, looks) for pair in pairs), key=lambda tried: -tried.recovered)

    def _look(
        self, body: nn.Module, images: Tensor, truth: Tensor, layers: Sequence[str], alphas: Mapping[str, float]
    ) -> "_Look":
        plain = torch.cat([_said(body, some) for some in _parts(images)]) == truth
        scores = [self._scores(body, list(alphas), some) for some in _parts(images)]
        far = {gate: torch.cat([score[gate] for score in scores]) > alpha for gate, alpha in alphas.items()}
        return _Look(plain, {at: self._shifted(body, at, images) == truth for at in layers}, far)

    def _scores(self, body: nn.Module, gates: Sequence[str], images: Tensor) -> dict[str, Scores]:
        reading = self.reading
        with torch.no_grad():
            found = features_at(body, gates, images, layout=reading.layout, prefix_tokens=reading.prefix_tokens)
            return {gate: far_score(found[gate], self.sources[gate].style).cpu() for gate in gates}

    def _shifted(self, body: nn.Module, at: str, images: Tensor) -> Int64[Tensor, "n"]:
        sources, reading, variant = self.sources[at], self.reading, self.variant
        samples = sources.sampled_styles(variant.samples, self.seed) if variant.to == "sampled" else None
        layer = StyleShifting(sources.style, 0.0, variant=variant, samples=samples).to(images.device)
        with attach(body, {at: layer}, layout=reading.layout, prefix_tokens=reading.prefix_tokens, calls=self.calls):
            return torch.cat([_said(body, some) for some in _parts(images)])


@dataclass(frozen=True)
class _Look:
    """Of every image in one look: whether the plain model is right, whether the model that shifts it at each layer is,
    and whether it is far by each gate."""

    plain: Bool[Tensor, "n"]
    shifted: Mapping[str, Bool[Tensor, "n"]]
    far: Mapping[str, Bool[Tensor, "n"]]

    def recovered(self, gate: str, at: str) -> float:
        """Accuracy of what the gate lets through, less the plain model's."""
        right = torch.where(self.far[gate], self.shifted[at], self.plain)
        return float((right.double() - self.plain.double()).mean())


def _tried(pair: tuple[str, str], alphas: Mapping[str, float], looks: Mapping[str, _Look]) -> Tried:
    gate, at = pair
    by_look = {name: look.recovered(gate, at) for name, look in looks.items()}
    shifted = fmean(_share(look.far[gate]) for look in looks.values())
    return Tried(gate, at, alphas[gate], shifted, fmean(by_look.values()), by_look)


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
            f"{best.at!r}, changes it by {best.recovered:+.1%}. This model may be better off as it is.",
            stacklevel=4,
        )
