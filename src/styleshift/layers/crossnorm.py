"""CrossNorm: samples exchange means and deviations, of whole maps or of random crops (not in the paper).

Reading: partners come from a random permutation, and one crop is drawn for the whole batch, as in released code.
Reading: released code draws crops until one is large enough (on a 1x1 map, for ever); here none is smaller.
"""

import math
from typing import Literal, get_args

import torch

from styleshift.layers._chance import Chance
from styleshift.style.draws import Draws
from styleshift.style.mixing import Box, crossnorm
from styleshift.style.shapes import Features
from styleshift.style.statistics import expect_maps

Crop = Literal["neither", "style", "content", "both"]
# a crop of less than a tenth of the map has hardly a style; as released
_LEAST_AREA = 0.1


class CrossNorm(Chance):
    """Gives every sample the statistics of another one, in training mode.

    p: probability that a forward does so. Released code chooses a few of all layers per forward instead.
    crop: where only a random crop counts: on the side that changes ("content"), on the lending one ("style"), on both.
    generator: where the draws come from; None is torch's global one.
    """

    def __init__(self, p: float = 0.5, *, crop: Crop = "neither", generator: torch.Generator | None = None) -> None:
        super().__init__(p, generator)
        if crop not in get_args(Crop):
            raise ValueError(f"crop is one of {get_args(Crop)}; got {crop!r}")
        self.crop: Crop = crop

    def restyled(self, features: Features, draws: Draws) -> Features:
        expect_maps(features)
        samples, _, height, width = features.shape
        partners = draws.permutation(samples)
        content = _random_box(height, width, draws) if self.crop in ("content", "both") else None
        style = _random_box(height, width, draws) if self.crop in ("style", "both") else None
        return crossnorm(features, partners, content, style)

    def extra_repr(self) -> str:
        return f"p={self.p}, crop={self.crop!r}"


def _random_box(height: int, width: int, draws: Draws) -> Box:
    """A crop of the map's proportions, its area and place uniform."""
    area, down, right = draws.uniform(3).tolist()
    side = (_LEAST_AREA + (1 - _LEAST_AREA) * area) ** 0.5
    return _span(height, side, down), _span(width, side, right)


def _span(length: int, share: float, position: float) -> slice:
    # rounded up, so that the area stays above its least
    size = max(1, math.ceil(length * share))
    start = int(position * (length - size + 1))
    return slice(start, start + size)
