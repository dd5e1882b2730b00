"""Cutting one window out of each image of a batch, all at once.

Images are uint8 ``[B, 3, H, W]``, best channels_last in memory: a window is then whole rows, which are copied fast,
and a small rearrangement within them.
"""

import math

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

Images = UInt8[Tensor, "B 3 H W"]


def windows(
    images: Images, top: Int64[Tensor, "B"], left: Int64[Tensor, "B"], flip: Bool[Tensor, "B"], size: int
) -> UInt8[Tensor, "B 3 h w"]:
    """The `size`×`size` window of each image from `top` and `left` on, mirrored where `flip`; channels_last."""
    batch, channels, height, width = images.shape
    steps = torch.arange(size, device=images.device)
    rows = (torch.arange(batch, device=images.device) * height + top)[:, None] + steps
    columns = left[:, None] + torch.where(flip[:, None], size - 1 - steps, steps)
    lines = images.permute(0, 2, 3, 1).reshape(batch * height, width * channels)
    lines = lines.index_select(0, rows.flatten()).view(batch, size, width * channels)
    values = columns[:, :, None] * channels + torch.arange(channels, device=images.device)
    window = lines.gather(2, values.view(batch, 1, -1).expand(-1, size, -1))
    return window.view(batch, size, size, channels).permute(0, 3, 1, 2)


def middle(images: Images, size: int) -> UInt8[Tensor, "B 3 h w"]:
    """The `size`×`size` window in the middle of each image."""
    top, left = ((side - size) // 2 for side in images.shape[2:])
    return images[:, :, top : top + size, left : left + size]


def resized_windows(
    images: Images, boxes: Int64[Tensor, "B 4"], flip: Bool[Tensor, "B"], size: int
) -> Float[Tensor, "B 3 h w"]:
    """The boxes (top, left, height, width) of the images, mirrored where `flip`, resized bilinearly to `size`×`size`.

    Values stay in 0..255. Nothing outside a box is looked at, as if the box had been cut out first. Boxes are
    enlarged here, never shrunk, so there is nothing to smooth beforehand.
    """
    height, width = images.shape[2:]
    rows = _sampled(boxes[:, 0], boxes[:, 2], size, torch.zeros_like(flip)) * (2 / height) + (1 / height - 1)
    columns = _sampled(boxes[:, 1], boxes[:, 3], size, flip) * (2 / width) + (1 / width - 1)
    grid = torch.stack((columns[:, None, :].expand(-1, size, -1), rows[:, :, None].expand(-1, -1, size)), dim=-1)
    return torch.nn.functional.grid_sample(images.float(), grid, mode="bilinear", align_corners=False)


def boxes(
    shape: tuple[int, int],
    area: Float[Tensor, "B tries"],
    ratio: Float[Tensor, "B tries"],
    corner: Float[Tensor, "B 2"],
) -> Int64[Tensor, "B 4"]:
    """Boxes (top, left, height, width) within `shape`: the first try that fits, else the whole image.

    area: share of the image that each try asks for, 0..1.
    ratio: logarithm of width over height that each try asks for.
    corner: where, from 0 up to but not 1 of the way there is, the box lies downwards and to the right.
    """
    height, width = shape
    wanted = torch.stack(((area / ratio.exp()).sqrt(), (area * ratio.exp()).sqrt()), dim=2) * math.sqrt(height * width)
    wanted = wanted.round().long()
    whole = torch.tensor([height, width]).expand(len(area), 1, 2)
    fits = ((wanted > 0) & (wanted <= whole)).all(dim=2, keepdim=True)
    tried = torch.cat((torch.where(fits, wanted, 0), whole), dim=1)
    first = tried.prod(dim=2).gt(0).int().argmax(dim=1)
    size = tried[torch.arange(len(area)), first]
    free = whole[:, 0] - size
    return torch.cat(((corner * (free + 1)).long(), size), dim=1)


def _sampled(
    start: Int64[Tensor, "B"], length: Int64[Tensor, "B"], size: int, flip: Bool[Tensor, "B"]
) -> Float[Tensor, "B n"]:
    """Where, in pixels of the image, the `size` samples of each box lie along one side."""
    centres = (torch.arange(size, device=start.device) + 0.5) / size
    places = torch.where(flip[:, None], 1 - centres, centres) * length[:, None] - 0.5
    return start[:, None] + places.clamp(min=0).minimum(length[:, None] - 1)
