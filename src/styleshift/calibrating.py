"""`alpha="auto"`: the threshold by which a chosen share of familiar images counts as far (beyond the paper).

    calibrated     styles, and the threshold that goes with them
    threshold      what at most a share of the scores is above
    Calibration    how the threshold was found
    Reading        how batches are read: which images make the centres, which are held out

The paper's alpha counts in spreads of the domains' means and says nothing of how far a domain's own images scatter.
Here images that made no centre are scored, and the threshold is a quantile of their scores.

Reading: held out is one image in ten by its hash, so neither the images' order nor the batch size matters. Scores are
pooled over the domains as the images come. Of more than 10,000 held-out images those with the smallest hashes count.
Reading: the score is Eq. 7's, with distances measured where a domain's images scatter alike in all directions
(`SourceStyles.whitened`): there many more strange images lie beyond what 5 % of the familiar ones reach.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor, nn

from styleshift.adapting import AskedLayout
from styleshift.attaching import features_at
from styleshift.hashing import image_keys, mixed
from styleshift.layers._gating import Gate
from styleshift.layers.style_shifting import StyleShifting
from styleshift.sources import (
    NOTHING_CAME,
    Domain,
    SourceStyles,
    Tally,
    finite,
    images_and_domains,
    onto_device_of,
    sources_of,
)
from styleshift.style.shapes import Phi, Scores
from styleshift.style.shifting import Variant
from styleshift.style.statistics import style_of
from styleshift.twins import twin

Auto = Literal["auto"]
Metric = Literal["mahalanobis", "euclidean"]
Keys = Int64[Tensor, "B"]
Chosen = Bool[Tensor, "B"]


@dataclass(frozen=True)
class Tried:
    """One way to shift that `at="auto"` tried.

    gate_at: the layer that decides. at: the layers that shift. fraction: how much of the way they go.
    alpha: the threshold at `gate_at`. shifted: share of strange renderings that were shifted.
    recovered: accuracy on them, less the plain model's, and its standard error; `looks` the same for each kind.
    """

    gate_at: str
    at: tuple[str, ...]
    fraction: float
    alpha: float
    shifted: float
    recovered: float
    error: float
    looks: Mapping[str, float]


@dataclass(frozen=True)
class Calibration:
    """How `alpha="auto"` came to its number.

    false_shift: share of familiar images that may be shifted. shifted: share of the held-out images that is.
    held_out: how many there were. given: whether they came by `holdout=`.
    tried: what `at="auto"` tried, what it took first.
    """

    false_shift: float
    shifted: float
    held_out: int
    given: bool
    tried: tuple[Tried, ...] = ()

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Calibration":
        """From JSON values, as a file holds them."""
        tried = ({"fraction": 1.0, "error": 0.0, **each, "at": as_names(each["at"])} for each in plain["tried"])
        return cls(**{**plain, "tried": tuple(Tried(**each) for each in tried)})


@dataclass(frozen=True)
class Calibrated:
    """sources: styles where the shift stands; `then` those of further layers that shift, in order.

    gate: styles by which it is decided who is far, if those are others. variant: how it shifts.
    """

    sources: SourceStyles
    gate: SourceStyles | None
    alpha: float
    calibration: Calibration | None
    then: tuple[SourceStyles, ...] = ()
    variant: Variant = field(default_factory=Variant)


@dataclass(frozen=True)
class Wish:
    """What `fit` was asked for; see there."""

    alpha: float | Auto = "auto"
    false_shift: float = 0.05
    metric: Metric | None = None
    holdout: Iterable[object] | None = None
    clusters: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.false_shift < 1:
            raise ValueError(
                f"false_shift is the share of familiar images that may be shifted, between 0 and 1; got "
                f"{self.false_shift}"
            )
        if self.metric not in (None, *get_args(Metric)):
            raise ValueError(f"metric is one of {', '.join(get_args(Metric))}; got {self.metric!r}")
        if self.alpha != "auto" and self.metric is not None:
            raise ValueError(
                f"metric= belongs to a threshold that is found, with alpha='auto'; got alpha={self.alpha}, which "
                "counts in the paper's distances. Leave metric= out"
            )
        if self.alpha != "auto" and self.holdout is not None:
            raise ValueError(f"holdout= serves to find the threshold, with alpha='auto'; got alpha={self.alpha}")


def calibrated(
    reading: "Reading",
    batches: Iterable[object],
    wish: Wish,
    at: Sequence[str],
    gate_at: str | None = None,
    variant: Variant | None = None,
) -> Calibrated:
    """Styles at the layers, from one pass, and the threshold: `wish.alpha`, or found on held-out images.

    at: the layers that shift, in order.
    """
    variant = variant or Variant()
    if wish.alpha != "auto" and gate_at is None and len(at) == 1:
        return Calibrated(_plainly(reading, batches, wish, at[0]), None, wish.alpha, None, variant=variant)
    gate = gate_at or at[0]
    sources, held = measured(reading, batches, wish, list(dict.fromkeys([gate, *at])))
    deciding = gate_of(sources[gate], wish)
    alpha, calibration = (wish.alpha, None) if wish.alpha != "auto" else calibration_of(deciding, held, wish)
    return assembled(sources, at, deciding, alpha, calibration, variant)


def gate_of(styles: SourceStyles, wish: Wish) -> SourceStyles:
    """These styles, with the metric by which they decide: the paper's where alpha is a number."""
    return styles.whitened() if wish.alpha == "auto" and wish.metric != "euclidean" else styles


def assembled(
    sources: "Styles",
    at: Sequence[str],
    deciding: SourceStyles,
    alpha: float,
    calibration: Calibration | None,
    variant: Variant,
) -> Calibrated:
    """All of it, without a gate where the layer that shifts decides by itself."""
    alone = deciding.at == at[0] and deciding.whitening is None
    gate = None if alone else without_sample(deciding)
    then = tuple(sources[layer] for layer in at[1:])
    return Calibrated(sources[at[0]], gate, alpha, calibration, then, variant)


def shifting(
    styles: SourceStyles, alpha: float, variant: Variant, seed: int, gate: Gate | None = None
) -> StyleShifting:
    """The layer that shifts to these styles. seed: of the training samples that the variant may look among."""
    samples = styles.sampled_styles(variant.samples, seed) if variant.to == "sampled" else None
    return StyleShifting(styles.style, alpha, variant=variant, samples=samples, gate=gate)


def as_names(at: str | Sequence[str]) -> tuple[str, ...]:
    """One layer's name, or several, as names."""
    # what is neither goes on as if it were a name, to where names are looked for and told from other things
    return tuple(at) if isinstance(at, Sequence) and not isinstance(at, str) else (at,)


def measured(
    reading: "Reading", batches: Iterable[object], wish: Wish, layers: Sequence[str], watch: "Watch | None" = None
) -> "tuple[Styles, Styles]":
    """The sources' styles at each layer, in clusters where these are wished for, and those of held-out images.

    watch: see `Reading.styles`; it is shown what is held out.
    """
    apart = one_in_ten if wish.alpha == "auto" and wish.holdout is None else nobody
    sources, held = reading.styles(batches, layers, apart, None if wish.holdout is not None else watch)
    _expect_centres(sources, held)
    if wish.holdout is not None:
        _, held = replace(reading, labelled=False).styles(wish.holdout, layers, everybody, watch)
        if not held:
            raise ValueError("no image came: `holdout` gave nothing. A generator can be read once; give a fresh one.")
    if wish.clusters is not None:
        sources = {layer: styles.clustered(wish.clusters, wish.seed) for layer, styles in sources.items()}
    return sources, held


def calibration_of(deciding: SourceStyles, held: "Styles", wish: Wish) -> tuple[float, Calibration]:
    """The threshold for the styles that decide, and how it was found."""
    scores = deciding.scores(held[deciding.at].sample if held else deciding.sample[:0])
    alpha = threshold(scores, wish.false_shift)
    shifted = float((scores > alpha).double().mean())
    return alpha, Calibration(wish.false_shift, shifted, len(scores), wish.holdout is not None)


def _plainly(reading: "Reading", batches: Iterable[object], wish: Wish, at: str) -> SourceStyles:
    """As the paper has it: one layer, and every image in a centre."""
    sources = sources_of(
        reading.model,
        batches,
        at,
        labelled=reading.labelled,
        layout=reading.layout,
        prefix_tokens=reading.prefix_tokens,
    )
    return sources if wish.clusters is None else sources.clustered(wish.clusters, wish.seed)


def threshold(scores: Scores, false_shift: float) -> float:
    """What at most this share of `scores` is above, and as large a share as can be; ties stay below together.

    Halfway to the next larger score: so a rounding of the last bit changes no decision on these samples.
    """
    _expect_enough(len(scores), false_shift)
    if not scores.isfinite().all():
        raise ValueError(
            "alpha='auto' needs at least two sources of different style: with one, every score is infinite and no "
            "threshold parts familiar images from others. Give domain labels, or clusters=, or alpha=0 to shift all."
        )
    falling = scores.sort(descending=True).values
    edge = falling[_most(len(scores), false_shift)]
    above = falling[falling > edge]
    if not len(above):
        return float(edge)
    middle = edge + (above[-1] - edge) / 2
    return float(middle if middle < above[-1] else edge)


def expect_agreement(
    at: str | Sequence[str] | None, alpha: float | Auto, gate_at: str | None, variant: Variant
) -> None:
    """Of what `fit` is asked for, before an image is read."""
    names = as_names(at or ())
    if at is not None and not 0 < len(names) == len(set(names)):
        raise ValueError(f"at names one layer, or several different ones in the order in which they run; got {at!r}")
    if at == "auto" and alpha != "auto":
        raise ValueError(
            f"at='auto' compares layers at one share of false shifts, so it needs alpha='auto'; got alpha={alpha}"
        )
    if variant.everything and (alpha == "auto" or gate_at is not None):
        raise ValueError(
            "variant 'all' shifts every sample, so nothing decides who is far: leave gate_at= out and alpha a number"
        )


def at_of(gate: SourceStyles | None) -> str | None:
    """Its layer, if there is one."""
    return None if gate is None else gate.at


def without_sample(styles: SourceStyles | None) -> SourceStyles | None:
    """A gate needs no more than its centres."""
    if styles is None:
        return None
    return replace(
        styles, sample=styles.sample[:0], sample_domain=styles.sample_domain[:0], sample_key=styles.sample_key[:0]
    )


Watch = Callable[[object, Tensor, Keys, Chosen], None]
Styles = dict[str, SourceStyles]


@dataclass(frozen=True)
class Reading:
    """How the images of `model` are read; the fields are `sources_of`'s."""

    model: nn.Module
    labelled: bool = True
    layout: AskedLayout = "auto"
    prefix_tokens: int | None = None

    def styles(
        self,
        batches: Iterable[object],
        layers: Sequence[str],
        held: Callable[[Keys], Chosen],
        watch: Watch | None = None,
    ) -> tuple[Styles, Styles]:
        """From one pass, the styles at each layer of the images that are not held out, and of those that are.

        Without an image there are no styles. watch: is shown every batch, its images, their hashes, which are held out.
        """
        kept, apart = ({layer: Tally(layer) for layer in layers} for _ in range(2))
        body = twin(self.model).eval()
        for number, batch in enumerate(batches):
            images, domains = images_and_domains(batch, self.labelled)
            images = onto_device_of(self.model, images)
            keys = image_keys(images)
            chosen = held(keys)
            for layer, phi in self._phi(body, layers, images, number).items():
                _add(kept[layer], phi, domains, keys, ~chosen)
                _add(apart[layer], phi, domains, keys, chosen)
            if watch is not None:
                watch(batch, images, keys, chosen)
        return _totals(kept), _totals(apart)

    def _phi(self, body: nn.Module, layers: Sequence[str], images: Tensor, number: int) -> dict[str, Phi]:
        with torch.no_grad():
            found = features_at(body, layers, images, layout=self.layout, prefix_tokens=self.prefix_tokens)
            return {layer: finite(style_of(found[layer]).phi.cpu(), number, layer) for layer in layers}


def nobody(keys: Keys) -> Chosen:
    """No image is held out."""
    return torch.zeros(len(keys), dtype=torch.bool)


def everybody(keys: Keys) -> Chosen:
    """Every image is."""
    return torch.ones(len(keys), dtype=torch.bool)


def one_in_ten(keys: Keys) -> Chosen:
    """Of many images a tenth, whatever their order."""
    # hashed again: the sample of Phi has taken the images with the smallest hashes
    again = mixed(keys.numpy().view(np.uint64) ^ _ANOTHER)
    return torch.from_numpy(again % np.uint64(10) == 0)


_ANOTHER = np.uint64(0x9E3779B97F4A7C15)


def _add(tally: Tally, phi: Phi, domains: Sequence[Domain], keys: Keys, rows: Chosen) -> None:
    tally.add(phi[rows], [domains[row] for row in rows.nonzero()[:, 0].tolist()], keys[rows])


def _totals(tallies: Mapping[str, Tally]) -> Styles:
    return {layer: tally.total() for layer, tally in tallies.items() if tally.parts}


def _expect_centres(sources: Styles, held: Styles) -> None:
    if not sources and not held:
        raise ValueError(NOTHING_CAME)
    found = {domain for styles in sources.values() for domain in styles.domains}
    if missing := [domain for styles in held.values() for domain in styles.domains if domain not in found]:
        raise ValueError(
            f"every image of domain {missing[0]!r} is among the tenth that is held out, so it has no centre. "
            "Give more images of it, or holdout= of images apart."
        )


def _expect_enough(count: int, false_shift: float) -> None:
    needed = math.ceil(1 / false_shift)
    if count < needed:
        raise ValueError(
            f"to shift {false_shift:g} of familiar images at most, the threshold needs at least {needed} held-out "
            f"images; there are {count}. Give more images, holdout= of images apart, or a larger false_shift."
        )


def _most(count: int, share: float) -> int:
    """The largest whole number that is at most this share of `count`."""
    most = math.floor(share * count) + 1
    while most / count > share:
        most -= 1
    return most
