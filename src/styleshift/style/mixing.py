"""New styles from the styles of a batch: mixed, sampled, exchanged (paper Sec. 3.1). What is random is an argument.

    mixstyle           mean and deviation mixed with a partner's               MixStyle
    efdmix             values mixed with a partner's of the same rank          EFDMix
    dsu                mean and deviation sampled around their own             DSU
    correlated_style   the same along the directions in which styles vary      CSU
    crossnorm          mean and deviation of a partner, whole maps or crops    CrossNorm

Reading: gradients flow as in released code. MixStyle holds all statistics constant, DSU none; EFDMix gives the content
1 and the partner's values 1 - lambda; CSU holds only the directions constant.
Reading: a batch of one has no spread to sample from, so DSU and CSU pass it through; released DSU gives NaN.
Reading: DSU's sampled deviation may be negative, as in released code.
"""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from styleshift.style.ranking import mixed_by_rank
from styleshift.style.shapes import Features, Labels, Scores, Statistic
from styleshift.style.statistics import EPS, Style, expect_maps, restyle, style_of
from styleshift.style.transfer import as_maps

# rows and columns of a crop
Box: TypeAlias = tuple[slice, slice]


def mixstyle(features: Features, partners: Labels, own_share: Scores, correction: int = 0) -> Features:
    """`features` in the style own_share * own + (1 - own_share) * partner's (MixStyle).

    partners: the index of each sample's partner in the batch.
    own_share: lambda, in [0, 1]; Beta(0.1, 0.1) in the paper.
    correction: 1 for released code's unbiased deviation.
    """
    own = style_of(features.detach(), correction)
    return restyle(features, own, mixed_style(own, own.rows(partners), own_share))


def mixed_style(first: Style, second: Style, first_share: Scores) -> Style:
    """first_share * first + (1 - first_share) * second, one share per sample."""
    share = first_share.to(first.mean)[:, None]
    return Style(share * first.mean + (1 - share) * second.mean, share * first.std + (1 - share) * second.std)


def efdmix(features: Features, partners: Labels, own_share: Scores) -> Features:
    """own_share * value + (1 - own_share) * the partner's value of the same rank in its channel (EFDMix).

    partners, own_share: as in `mixstyle`.
    """
    expect_maps(features)
    return as_maps(mixed_by_rank(features.flatten(2), partners, own_share), features)


def dsu(features: Features, noise: Style, correction: int = 0) -> Features:
    """`features` in a style sampled around their own, as widely as styles vary over the batch (DSU).

    noise: standard normal numbers `[B, C]`, for mean and for deviation.
    correction: 1 for released code's unbiased deviation.
    """
    own = style_of(features, correction)
    return features if len(features) < 2 else restyle(features, own, uncertain_style(own, noise))


def uncertain_style(own: Style, noise: Style) -> Style:
    """Styles sampled with the spread over the batch, each channel by itself."""
    return Style(
        own.mean + noise.mean.to(own.mean) * _spread_over_batch(own.mean),
        own.std + noise.std.to(own.std) * _spread_over_batch(own.std),
    )


def correlated_style(features: Features, noise: Style, strength: Scores, correction: int = 0) -> Features:
    """`features` in a style sampled with the full covariance of the batch's styles over channels (CSU).

    noise: standard normal numbers `[B, C]`, for mean and for deviation.
    strength: how much of the noise each sample takes, in [0, 1]; Beta(0.3, 0.3) in released code.
    correction: 1 for released code's unbiased deviation.
    """
    own = style_of(features, correction)
    if len(features) < 2:
        return features
    scale = strength.to(own.mean)[:, None]
    mean = own.mean + scale * correlated(noise.mean.to(own.mean), own.mean)
    std = own.std + scale * correlated(noise.std.to(own.std), own.std)
    return restyle(features, own, Style(mean, std))


def correlated(noise: Statistic, statistic: Statistic) -> Statistic:
    """Standard normal `noise`, given the covariance that `statistic` has over the batch (by its symmetric root)."""
    with torch.autocast(statistic.device.type, enabled=False):
        centred = statistic - statistic.mean(dim=0)
        covariance = centred.T @ centred / len(statistic)
        # an overflow must come out as NaN, which loss scaling knows how to skip; the decomposition would raise an error
        _, directions = torch.linalg.eigh(covariance.detach().nan_to_num())
        variances = ((centred @ directions).square().mean(dim=0)).clamp(min=_LEAST_VARIANCE)
        root: Tensor = (directions * variances.sqrt()) @ directions.T
        return noise @ root


# the root's gradient is infinite at 0, where all directions end that a small batch does not span
_LEAST_VARIANCE = 1e-12


def crossnorm(
    features: Features, partners: Labels, content_box: Box | None = None, style_box: Box | None = None
) -> Features:
    """`features` with the mean and deviation of their partners (CrossNorm).

    content_box: the crop that changes style, the rest staying as it is; None is the whole map.
    style_box: the crop whose style the partner lends; None is the whole map.
    """
    expect_maps(features)
    content, lenders = _crop(features, content_box), _crop(features, style_box)
    changed = restyle(content, style_of(content), style_of(lenders).rows(partners))
    if content_box is None:
        return changed
    pasted = features.clone()
    pasted[:, :, content_box[0], content_box[1]] = changed
    return pasted


def _crop(features: Features, box: Box | None) -> Float[Tensor, "B C height width"]:
    return features if box is None else features[:, :, box[0], box[1]]


def _spread_over_batch(statistic: Statistic) -> Tensor:
    return (statistic.var(dim=0) + EPS).sqrt()
