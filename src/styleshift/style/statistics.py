"""Style statistics: what a feature map looks like, apart from what it shows (paper Sec. 3.1).

    style_of     mu and sigma of every sample and channel            Eqs. 1-2
    Style.phi    Phi = [mu, sigma], where two styles are compared    Eq. 4
    restyle      features carried from one style into another        the affine map inside Eqs. 3 and 8

Reading: Eq. 2 divides by HW, so sigma is the biased deviation; `correction=1` is the unbiased one of released code.
Reading: sigma = sqrt(variance + 1e-6), so that a dead channel has a deviation to divide by.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from styleshift.style.affine import affine, moments
from styleshift.style.shapes import Features

EPS = 1e-6


class Style(NamedTuple):
    """The style of some samples or domains: `mean` and `std`, each `[rows, C]`."""

    mean: Float[Tensor, "rows C"]
    std: Float[Tensor, "rows C"]

    @property
    def phi(self) -> Float[Tensor, "rows P"]:
        """Phi = [mu, sigma], `[rows, 2C]` (Eq. 4)."""
        return torch.cat([self.mean, self.std], dim=1)

    @classmethod
    def of_phi(cls, phi: Float[Tensor, "rows P"]) -> "Style":
        """The style that a Phi stands for; the inverse of `phi`."""
        mean, std = phi.chunk(2, dim=1)
        return cls(mean, std)

    def rows(self, which: Tensor) -> "Style":
        """The styles at these indices, or where this mask is true."""
        return Style(self.mean[which], self.std[which])

    def detached(self) -> "Style":
        """The same style, cut from the graph."""
        return Style(self.mean.detach(), self.std.detach())


def style_of(features: Features, correction: int = 0) -> Style:
    """The style of every sample (Eqs. 1-2), in float32 at least; NaN for a channel that holds NaN or infinity.

    correction: 0 divides by HW as Eq. 2 does, 1 by HW - 1 as released code does (a 1x1 map then has variance 0).
    """
    expect_maps(features)
    mean, variance = moments(wide(features))
    places = features.shape[2] * features.shape[3]
    return Style(mean, (variance * (places / max(places - correction, 1)) + EPS).sqrt())


def restyle(features: Features, own: Style, new: Style) -> Features:
    """`features`, whose style is `own`, in the style `new`: sigma_new (f - mu) / sigma + mu_new."""
    return affine(wide(features), own.mean, new.std / own.std, new.mean).to(features.dtype)


def wide(features: Features) -> Features:
    """In float32 at least: half precision neither sums nor scales a map without overflow."""
    return features.float() if features.dtype.itemsize < 4 else features


def expect_maps(features: Tensor) -> None:
    """Say what is needed if these are not feature maps."""
    if features.ndim != 4 or not features.is_floating_point() or 0 in features.shape[1:]:
        raise ValueError(
            f"styles are taken over feature maps: floating point [B, C, H, W] with at least one channel and place; "
            f"got {features.dtype} {list(features.shape)}. Attach to a layer that gives maps."
        )
