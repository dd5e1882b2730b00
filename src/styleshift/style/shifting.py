"""Test-time style shifting (TS): far test samples in the nearest source domain's style (paper Sec. 4.2, Algorithm 2).

    gaps         ||Phi(f(t)) - Phi_Sn|| for every sample and source       Eq. 7
    spread       mean over n of ||Phi_S - Phi_Sn||                        Eq. 7, right side without alpha
    far_score    how far a sample is, in spreads                          Eq. 7's condition
    scores_of    the same of styles that are known already
    shift        TS(f)                                                    Eq. 8
    shifted_as   the same with one of the variants                        appendix, "Variants of TS"

Reading: Phi_S is the unweighted mean over domains, and distances are taken on [mu, sigma] as they are, not normalised.
Reading: with one source the spread is 0, so every sample counts as far (score inf, also for one with gap 0).
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from styleshift.style.shapes import Centres, Distances, Features, Phi, Scores
from styleshift.style.statistics import Style, restyle, style_of
from styleshift.style.whitening import Whitening

Target = Literal["nearest", "sampled", "soft"]


@dataclass(frozen=True)
class Variant:
    """Which samples are shifted, to which style, and how far.

    everything: shift also what is not far (the appendix' variant 1).
    to: "nearest" source domain, as the paper proposes; "sampled", the nearest of some training samples (the appendix'
        variant 2); "soft", the mixture of all sources, each weighted by how near it is (beyond the paper).
    fraction: how much of the way from the own style to that one, in (0, 1]; the paper goes all of it.
    samples: among how many training samples variant 2 looks; the paper takes 100.
    temperature: of the soft weights, in spreads; towards 0 the nearest source gets all the weight.
    """

    everything: bool = False
    to: Target = "nearest"
    fraction: float = 1.0
    samples: int = 100
    temperature: float = 0.25

    def __post_init__(self) -> None:
        if self.to not in get_args(Target):
            raise ValueError(f"a shift goes to one of {get_args(Target)}; got {self.to!r}")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction is the share of the way, in (0, 1]; got {self.fraction}")
        if self.samples < 1 or not 0 < self.temperature < inf:
            raise ValueError(
                f"samples is at least 1 and temperature a number above 0; got {self.samples} and {self.temperature}"
            )

    @classmethod
    def named(cls, name: "str | Variant") -> "Variant":
        """`ts`, `all`, `sampled`, `soft`, `partial`, each possibly with its number: `sampled=50`, `partial=0.8`."""
        if isinstance(name, Variant):
            return name
        word, equals, number = name.partition("=")
        if word not in _NAMED or (equals and word not in _NUMBERED):
            raise ValueError(
                f"a variant is one of {', '.join(_NAMED)}, or with a number as in 'partial=0.8'; got {name!r}"
            )
        return _with_number(_NAMED[word], _NUMBERED[word], number) if equals else _NAMED[word]


def _with_number(variant: Variant, field: str, number: str) -> Variant:
    kind = type(getattr(variant, field))
    try:
        setting: dict[str, Any] = {field: kind(number)}
    except ValueError:
        raise ValueError(f"{field} is a number ({kind.__name__}); got {number!r}") from None
    return replace(variant, **setting)


_NAMED = {
    "ts": Variant(),
    "all": Variant(everything=True),
    "sampled": Variant(to="sampled"),
    "soft": Variant(to="soft"),
    "partial": Variant(fraction=0.8),
}
# the field that the number behind a name is for
_NUMBERED = {"sampled": "samples", "soft": "temperature", "partial": "fraction"}


def shift(features: Features, sources: Style, alpha: float = 3.0) -> Features:
    """Samples far from the sources in the style of the nearest one, the others as they are (Eqs. 7-8).

    sources: the centres of the N source domains, `[N, C]` each.
    alpha: how many times the sources' own spread counts as far. 0 shifts every sample; the paper takes 3 for
        classification, 5 for retrieval.
    """
    return shifted_as(Variant(), features, sources, alpha)


def far_score(features: Features, sources: Style, whitening: Whitening | None = None) -> Scores:
    """How far every sample is from the sources, in spreads: it is shifted where `score > alpha`."""
    own = style_of(features)
    return scores_of(own.phi, _centres(features, sources), whitening)


def scores_of(phi: Phi, centres: Centres, whitening: Whitening | None = None) -> Scores:
    """`far_score` where Phi is known already.

    whitening: coordinates in which distances are taken; None takes Phi as it is, as the paper does.
    """
    if whitening is None:
        return _scores(gaps(phi, centres), centres)
    styles = whitening.of(phi)
    sources = whitening.centres.to(styles)
    return _scores(gaps(styles, sources), sources).to(phi.dtype)


def gaps(phi: Phi, centres: Centres) -> Distances:
    """Euclidean distance of every sample's Phi to every centre."""
    # differences, not |a|² - 2ab + |b|²: that form loses near samples to rounding
    distances: Tensor = torch.linalg.vector_norm(phi[:, None, :] - centres[None, :, :], dim=2)
    return distances


def spread(centres: Centres) -> Float[Tensor, ""]:
    """How far the sources lie from their own, unweighted mean: mean over n of ||Phi_S - Phi_Sn||."""
    # written as the mean deviation from the first centre, so that equal centres have spread 0, not a rounding
    deviations = centres - centres[:1]
    distances: Tensor = torch.linalg.vector_norm(deviations - deviations.mean(dim=0), dim=1)
    return distances.mean()


def shifted_as(
    variant: Variant,
    features: Features,
    sources: Style,
    alpha: float,
    samples: Style | None = None,
    far: Bool[Tensor, "B"] | None = None,
) -> Features:
    """`shift` in another variant.

    samples: styles of training samples, for `to="sampled"`.
    far: which samples are far, where that is known already; alpha then decides nothing.
    """
    expect_alpha(alpha)
    own = style_of(features)
    centres = _centres(features, sources)
    distances = gaps(own.phi, centres)
    target = target_style(variant, own, distances, centres, samples)
    if variant.everything:
        return restyle(features, own, target)
    # The choice is made on the styles: one path for every batch, so that the function can be traced and exported, and
    # no choice over whole maps. From style (0, 1) to style (-0, 1) a sample stays as it is, to the last bit.
    moved = (are_far(distances, centres, alpha) if far is None else far)[:, None]
    return restyle(features, _where(moved, own, (0.0, 1.0)), _where(moved, target, (_NOTHING, 1.0)))


# -0 is what changes no number added to: with 0, a feature of -0 would turn into 0
_NOTHING = -0.0


def _where(far: Bool[Tensor, "B 1"], style: Style, otherwise: tuple[float, float]) -> Style:
    mean, std = otherwise
    return Style(torch.where(far, style.mean, mean), torch.where(far, style.std, std))


def target_style(
    variant: Variant, own: Style, distances: Distances, centres: Centres, samples: Style | None = None
) -> Style:
    """The style in which this variant renders every sample, far or not."""
    if variant.to == "soft":
        weights = torch.softmax(-distances / (variant.temperature * spread(centres)).clamp(min=_TINY), dim=1)
        # not a matrix product, which autocast would round to half precision
        goal = (weights[:, :, None] * centres).sum(dim=1)
    elif variant.to == "sampled":
        if samples is None:
            raise ValueError("a shift to the nearest training sample needs their styles: `samples` is missing")
        candidates = samples.phi.to(own.mean)
        goal = candidates[gaps(own.phi, candidates).argmin(dim=1)]
    else:
        goal = centres[distances.argmin(dim=1)]
    if variant.fraction == 1:
        return Style.of_phi(goal)
    return Style.of_phi(torch.lerp(own.phi, goal, variant.fraction))


_TINY = 1e-12


def are_far(distances: Distances, centres: Centres, alpha: float) -> Bool[Tensor, "B"]:
    """Eq. 7's condition, a strict `>`."""
    return _scores(distances, centres) > alpha


def _scores(distances: Distances, centres: Centres) -> Scores:
    # the spread of one source is 0 whatever it is; said outright, so that 0 / 0 is far as well
    if len(centres) == 1:
        return torch.full_like(distances[:, 0], torch.inf)
    own_spread = spread(centres)
    return torch.where(own_spread > 0, distances.mean(dim=1) / own_spread, torch.inf)


def expect_alpha(alpha: float) -> None:
    """Say what alpha means if it is below 0 or not a number."""
    if not alpha >= 0:
        raise ValueError(f"alpha is at least 0 (0 shifts every sample; the paper takes 3); got {alpha}")


def _centres(features: Features, sources: Style) -> Centres:
    channels = features.shape[1]
    if sources.mean.ndim != 2 or sources.mean.shape[1] != channels or sources.mean.shape != sources.std.shape:
        raise ValueError(
            f"sources is a Style of [N, {channels}] for features of {channels} channels; got mean "
            f"{list(sources.mean.shape)} and std {list(sources.std.shape)}. Take the sources' styles at this layer."
        )
    if len(sources.mean) == 0:
        raise ValueError("shifting needs at least one source domain; got none")
    dtype = features.dtype if features.dtype.itemsize >= 4 else torch.float32
    return sources.phi.to(device=features.device, dtype=dtype)
