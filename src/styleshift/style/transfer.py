"""Style transfer: one image's content in another style (paper Sec. 3.1, Eq. 3).

    adain    matches mean and deviation                       Eq. 3
    efdm     matches the whole distribution, value by value   EFDM

Reading: EFDM pairs equal values in order of position.
"""

import torch
from torch import Tensor

from styleshift.style.ranking import sorted_with_places
from styleshift.style.shapes import Features
from styleshift.style.statistics import Style, expect_maps, restyle, style_of


def adain(features: Features, style: Style) -> Features:
    """`features` with the mean and deviation of `style` (Eq. 3). A constant channel becomes the style's mean.

    style: one style for every sample, `[B, C]`, or one for all, `[1, C]`.
    """
    own = style_of(features)
    return restyle(features, own, _for_every_sample(style, own))


def efdm(content: Features, reference: Features) -> Features:
    """The values of `reference` in the order of `content`, sample by sample and channel by channel (EFDM).

    The gradient goes to the values of `reference`; `content` gives nothing but the order.

    reference: of the same shape as `content`.
    """
    if content.shape != reference.shape:
        raise ValueError(
            f"efdm pairs values by rank, so content and reference need one shape; "
            f"got {list(content.shape)} and {list(reference.shape)}. Resize the reference first."
        )
    expect_maps(content)
    expect_maps(reference)
    _, places = sorted_with_places(content.detach().flatten(2))
    values, _ = sorted_with_places(reference.flatten(2))
    return as_maps(torch.empty_like(values).scatter_(-1, places, values), content)


def as_maps(rows: Tensor, like: Features) -> Features:
    """`[B, C, HW]` as the maps that they were, in the memory format of `like`."""
    maps = rows.view(like.shape)
    if like.is_contiguous() or not like.is_contiguous(memory_format=torch.channels_last):
        return maps
    return maps.contiguous(memory_format=torch.channels_last)


def _for_every_sample(style: Style, own: Style) -> Style:
    """`style` with as many rows, of the same type, as `own`."""
    samples, channels = own.mean.shape
    for part in style:
        if part.ndim != 2 or part.shape[0] not in (1, samples) or part.shape[1] != channels:
            raise ValueError(
                f"adain needs a style of shape {[samples, channels]}, or {[1, channels]} for one that all samples get; "
                f"got mean {list(style.mean.shape)} and std {list(style.std.shape)}. Choose rows by style.rows(index)."
            )
    return Style(style.mean.to(own.mean).expand_as(own.mean), style.std.to(own.std).expand_as(own.std))
