"""The train and test transforms of each protocol, on a whole batch of cached uint8 images at once.

    light       the cpu scale: random 112 crop of 128, flip, brightness, now and then grey
    tsb         the paper's own training (last appendix): now and then enlarged and cropped, flip
    small       the quickstart's, for digits: random 28 crop of 32
    domainbed   DomainBed's: random resized crop, flip, colour jitter, now and then grey

All chance comes from the generator given, drawn on the CPU in a fixed order, as many numbers whatever they decide: the
same generator state gives the same batch, on any device. Results are float32, normalised for ImageNet, channels_last.

Reading: the published transforms start from the file; these start from the cache, whose images are already the middle
square at `cache_size`. For PACS (227×227) that is the same picture; elsewhere what lies beyond it is never seen.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, UInt8
from torch import Generator, Tensor
from torch.nn.functional import interpolate

from styleshift.data.colour import grey, jittered
from styleshift.data.windows import boxes, middle, resized_windows, windows

Cached = UInt8[Tensor, "B 3 S S"]
Ready = Float[Tensor, "B 3 H H"]

# ImageNet's, which every pre-trained backbone here expects
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


@runtime_checkable
class Transform(Protocol):
    """How a protocol makes what the network sees out of cached images.

    cache_size: the side of the cached images it takes.
    size: the side of the images it gives.
    """

    @property
    def cache_size(self) -> int: ...
    @property
    def size(self) -> int: ...
    def train(self, images: Cached, generator: Generator) -> Ready: ...
    def test(self, images: Cached) -> Ready: ...


@dataclass(frozen=True)
class Light:
    """The cpu scale's transform.

    cache_size, size: side before and after the random crop.
    brightness: factors are uniform in 1 ± this.
    grey: probability of losing colour.
    """

    cache_size: int = 128
    size: int = 112
    brightness: float = 0.2
    grey: float = 0.1

    def train(self, images: Cached, generator: Generator) -> Ready:
        """Crop, flip, brightness (clipped at white), grey. Drawn: crop, flip, brightness, grey."""
        batch, device = len(images), images.device
        corner = torch.randint(0, self.cache_size - self.size + 1, (2, batch), generator=generator).to(device)
        flip, factor, lost = torch.rand(3, batch, generator=generator).to(device)
        cut = windows(_checked(images, self), corner[0], corner[1], flip < 0.5, self.size)
        bright = _flat(cut).mul_((1 + self.brightness * (2 * factor - 1))[:, None] / 255).clamp_(max=1)
        scaled = _pictures(bright, self.size)
        colourless = (lost < self.grey).nonzero()[:, 0]
        scaled[colourless] = grey(scaled[colourless]).expand(-1, 3, -1, -1)
        return normalised(scaled)

    def test(self, images: Cached) -> Ready:
        """The middle crop."""
        return normalised(middle(_checked(images, self), self.size), over=255.0)


@dataclass(frozen=True)
class Small:
    """The quickstart's transform: a digit must not be mirrored, and its colours are its style.

    cache_size, size: side before and after the random crop.
    """

    cache_size: int = 32
    size: int = 28

    def train(self, images: Cached, generator: Generator) -> Ready:
        """Crop. Drawn: crop."""
        batch, device = len(images), images.device
        corner = torch.randint(0, self.cache_size - self.size + 1, (2, batch), generator=generator).to(device)
        unflipped = torch.zeros(batch, dtype=torch.bool, device=device)
        return normalised(windows(_checked(images, self), corner[0], corner[1], unflipped, self.size), over=255.0)

    def test(self, images: Cached) -> Ready:
        """The middle crop."""
        return normalised(middle(_checked(images, self), self.size), over=255.0)


@dataclass(frozen=True)
class TSB:
    """The paper's training transform (Dassl's random 2d translation, then flip).

    cache_size, size: side of the images, before and after.
    enlarge: probability of being enlarged to 1.125 times the side and cropped back.

    Reading: enlarged from the cached image, not again from the file.
    """

    cache_size: int = 224
    size: int = 224
    enlarge: float = 0.5

    def train(self, images: Cached, generator: Generator) -> Ready:
        """Enlarge and crop, flip. Drawn: whether, where down, where right, flip."""
        draws = torch.rand(4, len(images), generator=generator).to(images.device)
        origin = torch.zeros(len(images), dtype=torch.int64, device=images.device)
        flip = draws[3] < 0.5
        cut = windows(_checked(images, self), origin, origin, flip, self.size)
        chosen = (draws[0] < self.enlarge).nonzero()[:, 0]
        if len(chosen):
            large = _enlarged(images[chosen], round(self.size * 1.125))
            # rounded and not floored, as released: both ends come up half as often
            top, left = (draws[1:3, chosen] * (large.shape[2] - self.size)).round().long()
            cut[chosen] = windows(large, top, left, flip[chosen], self.size)
        return normalised(cut, over=255.0)

    def test(self, images: Cached) -> Ready:
        """The image as it is: short side at 224, middle square."""
        return normalised(_checked(images, self), over=255.0)


@dataclass(frozen=True)
class DomainBed:
    """DomainBed's transform.

    cache_size, size: side of the images, before and after.
    area: the random crop's smallest share of the image.
    jitter: brightness, contrast and saturation factors are uniform in 1 ± this, turns of hue in ± this.
    grey: probability of losing colour.

    Reading: the test image is the middle square; DomainBed squeezes the whole image into one (for PACS the same).
    """

    cache_size: int = 224
    size: int = 224
    area: float = 0.7
    jitter: float = 0.3
    grey: float = 0.1

    def train(self, images: Cached, generator: Generator) -> Ready:
        """Random resized crop, flip, jitter, grey. Drawn: ten crops, corner, flip, grey, factors, order."""
        batch, device = len(images), images.device
        area, ratio = torch.rand(2, batch, 10, generator=generator)
        corner = torch.rand(batch, 2, generator=generator)
        flip, lost = torch.rand(2, batch, generator=generator).to(device)
        factors = (torch.rand(batch, 4, generator=generator) * 2 - 1) * self.jitter + torch.tensor([1.0, 1.0, 1.0, 0.0])
        order = torch.rand(batch, 4, generator=generator).argsort(dim=1)
        side = (self.cache_size, self.cache_size)
        box = boxes(side, self.area + (1 - self.area) * area, math.log(4 / 3) * (2 * ratio - 1), corner)
        cut = resized_windows(_checked(images, self), box.to(device), flip < 0.5, self.size) / 255
        coloured = jittered(cut, factors.to(device), order.to(device))
        return normalised(torch.where((lost < self.grey)[:, None, None, None], grey(coloured), coloured))

    def test(self, images: Cached) -> Ready:
        """The image at 224×224."""
        return normalised(_checked(images, self), over=255.0)


TRANSFORMS: dict[str, type[Light] | type[Small] | type[TSB] | type[DomainBed]] = {
    "light": Light,
    "small": Small,
    "tsb": TSB,
    "domainbed": DomainBed,
}


def transform(name: str) -> Transform:
    """The transform with this name: "light", "small", "tsb" or "domainbed"."""
    if name not in TRANSFORMS:
        raise KeyError(f"there is no transform {name!r}; it is one of {', '.join(TRANSFORMS)}.")
    return TRANSFORMS[name]()


def normalised(
    images: UInt8[Tensor, "B 3 H W"] | Float[Tensor, "B 3 H W"], over: float = 1.0
) -> Float[Tensor, "B 3 H W"]:
    """Less ImageNet's mean, over its deviation; float32, channels_last.

    over: the value of white, 1 or 255.
    """
    width = images.shape[3]
    scale = torch.tensor([1 / (over * std) for std in STD], device=images.device)
    shift = torch.tensor([-mean / std for mean, std in zip(MEAN, STD, strict=True)], device=images.device)
    # whole lines of pixels at once: three times as fast as a broadcast over channels
    lines = images.permute(0, 2, 3, 1).reshape(-1, 3 * width)
    ready = torch.addcmul(shift.repeat(width), lines.float(), scale.repeat(width))
    return ready.view(len(images), -1, width, 3).permute(0, 3, 1, 2)


def _checked(images: Cached, transform: Transform) -> Cached:
    side = transform.cache_size
    if images.shape[1:] != (3, side, side) or images.dtype != torch.uint8:
        raise ValueError(
            f"{type(transform).__name__} takes uint8 images [B, 3, {side}, {side}], as cached at its cache_size; "
            f"got {images.dtype} {list(images.shape)}."
        )
    return images


def _flat(images: UInt8[Tensor, "B 3 H H"]) -> Float[Tensor, "B n"]:
    return images.permute(0, 2, 3, 1).reshape(len(images), -1).float()


def _pictures(flat: Float[Tensor, "B n"], side: int) -> Ready:
    return flat.view(len(flat), side, side, 3).permute(0, 3, 1, 2)


def _enlarged(images: Cached, side: int) -> UInt8[Tensor, "B 3 H H"]:
    large = interpolate(images.float(), size=(side, side), mode="bilinear", align_corners=False)
    return large.round_().to(torch.uint8).contiguous(memory_format=torch.channels_last)
