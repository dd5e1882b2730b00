"""Changes of colour on a batch of RGB images in 0..1, a factor an image: brightness, contrast, saturation, hue."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

Images = Float[Tensor, "B 3 H W"]
Factors = Float[Tensor, "B"]

# ITU-R 601: how bright red, green and blue look
GREY = (0.2989, 0.587, 0.114)


def grey(images: Images) -> Float[Tensor, "B 1 H W"]:
    """How bright each pixel looks."""
    red, green, blue = images.unbind(dim=1)
    return (GREY[0] * red + GREY[1] * green + GREY[2] * blue).unsqueeze(1)


def brightness(images: Images, factor: Factors) -> Images:
    """Every value times the factor."""
    return (images * _each(factor)).clamp(0, 1)


def contrast(images: Images, factor: Factors) -> Images:
    """Away from (factor over 1) or towards the image's mean grey."""
    return _blend(images, grey(images).mean(dim=(2, 3), keepdim=True), factor)


def saturation(images: Images, factor: Factors) -> Images:
    """Away from (factor over 1) or towards each pixel's grey."""
    return _blend(images, grey(images), factor)


def hue(images: Images, turn: Factors) -> Images:
    """Every hue turned by this share of the circle, -0.5..0.5."""
    brightest, at = images.max(dim=1)
    chroma = brightest - images.amin(dim=1)
    red, green, blue = images.unbind(dim=1)
    # where the brightest channel is red, green, blue: 0, 2 or 4 sixths of the circle and a part towards a neighbour
    apart = torch.stack((green - blue, blue - red, red - green), dim=1).gather(1, at.unsqueeze(1)).squeeze(1)
    sixths = apart / torch.where(chroma > 0, chroma, 1) + 2 * at + 6 * turn[:, None, None]
    # a channel's distance on the circle from (5, 3, 1) sixths says how much chroma it lacks
    around = (torch.tensor([5.0, 3.0, 1.0], device=images.device)[:, None, None] + sixths.unsqueeze(1)) % 6
    lacks = torch.minimum(around, 4 - around).clamp(0, 1)
    return brightest.unsqueeze(1) - chroma.unsqueeze(1) * lacks


CHANGES: tuple[Callable[[Images, Factors], Images], ...] = (brightness, contrast, saturation, hue)


def jittered(images: Images, factors: Float[Tensor, "B 4"], order: Int64[Tensor, "B 4"]) -> Images:
    """The four `CHANGES` with these factors, in each image's own order."""
    images = images.clone()
    for step in range(len(CHANGES)):
        for number, change in enumerate(CHANGES):
            chosen = (order[:, step] == number).nonzero()[:, 0]
            images[chosen] = change(images[chosen], factors[chosen, number])
    return images


def _blend(images: Images, other: Float[Tensor, "B 1 _H _W"], factor: Factors) -> Images:
    return (other + _each(factor) * (images - other)).clamp(0, 1)


def _each(factor: Factors) -> Float[Tensor, "B 1 1 1"]:
    return factor[:, None, None, None]
