"""Familiar images in looks that no source has: what is seen in them stays, their style goes (beyond the paper).

    strange_looks    images `[B, C, H, W]` as the model takes them -> the same in each look, by name

    jitter      every channel brighter or darker, with more or less contrast, each image another way
    inverted    bright is dark
    edges       dark lines on white where brightness changes
    texture     the strengths of all spatial frequencies are another image's, the phases its own

Images are normalised in a way that nobody tells: black and white are what is least and most in each channel.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn.functional import pad

Images = Float[Tensor, "B C H W"]


def strange_looks(images: Images, seed: int = 0) -> dict[str, Images]:
    """These images in every look; the same for the same seed."""
    wide = images.detach().float()
    black = wide.amin(dim=(0, 2, 3), keepdim=True)
    # a channel that never varies stays what it is
    span = wide.amax(dim=(0, 2, 3), keepdim=True) - black
    unit = (wide - black) / span.clamp(min=torch.finfo(torch.float32).tiny)
    looks = {}
    for name, look in LOOKS.items():
        generator = Generator().manual_seed(seed)
        looks[name] = (look(unit, generator).clamp(0, 1) * span + black).to(images.dtype)
    return looks


def jittered(unit: Images, generator: Generator) -> Images:
    """Contrast by a factor of 1/4 to 4 and brightness by up to 0.4, drawn for each image and channel."""
    contrast, brightness = torch.rand(2, *unit.shape[:2], 1, 1, generator=generator).to(unit.device)
    middle = unit.mean(dim=(2, 3), keepdim=True)
    strange: Tensor = (unit - middle) * torch.exp2(4 * contrast - 2) + middle + 0.8 * (brightness - 0.5)
    return strange


def inverted(unit: Images, generator: Generator) -> Images:
    """Nothing is drawn."""
    return 1 - unit


def edges(unit: Images, generator: Generator) -> Images:
    """As dark as brightness changes from a pixel to the next; an image's strongest line is black. Nothing is drawn."""
    grey = unit.mean(dim=1, keepdim=True)
    padded = pad(grey, (0, 1, 0, 1), mode="replicate")
    change = (padded[..., :-1, 1:] - grey).abs() + (padded[..., 1:, :-1] - grey).abs()
    strongest = change.amax(dim=(2, 3), keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    return (1 - change / strongest).expand_as(unit)


def textured(unit: Images, generator: Generator) -> Images:
    """The amplitudes of another image, all of them shuffled round a circle."""
    order = torch.randperm(len(unit), generator=generator)
    lender = torch.empty_like(order).scatter_(0, order, order.roll(1)).to(unit.device)
    spectrum = torch.fft.rfft2(unit)
    lent = torch.polar(spectrum[lender].abs(), spectrum.angle())
    back: Tensor = torch.fft.irfft2(lent, s=unit.shape[2:])
    return back


LOOKS: dict[str, Callable[[Images, Generator], Images]] = {
    "jitter": jittered,
    "inverted": inverted,
    "edges": edges,
    "texture": textured,
}
