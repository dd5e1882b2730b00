"""The two passes over feature maps under every style formula, with their gradients.

    moments    mean and biased variance of every sample and channel
    affine     one affine map: (f - centre) * scale + offset, with one of each per sample and channel

Maps are large, so what costs is memory that is touched for the first time, not arithmetic: temporaries are either as
small as a processor cache or written in place. A compiler does that by itself and is given the plain formulas.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styleshift.style.shapes import Features, Statistic

# numbers in a temporary: 4 MiB of float32, which the allocator hands out again while it is still in the cache
_SLAB = 1 << 20
# from here on a temporary of the whole map comes from the operating system, page by page
_NUMBERS_WORTH_SLABS = 4 * _SLAB


def moments(features: Features) -> tuple[Statistic, Statistic]:
    """Mean and biased variance, both `[B, C]`, exact for a constant channel."""
    if torch.compiler.is_compiling():
        return _corrected_two_pass(features)
    # to prepare a backward pass costs as much as the maps of one image do
    run: Callable[..., tuple[Statistic, Statistic]] = _Moments.apply if _is_followed() else _Moments.forward
    return run(features)


def affine(features: Features, centre: Statistic, scale: Statistic, offset: Statistic) -> Features:
    """(f - centre) * scale + offset."""
    if torch.compiler.is_compiling():
        return (features - _over_map(centre)) * _over_map(scale) + _over_map(offset)
    run: Callable[..., Features] = _Affine.apply if _is_followed() else _Affine.forward
    return run(features, centre, scale, offset)


def _is_followed() -> bool:
    """Whether a backward pass may come, or one of torch.func's transforms is at work."""
    return torch.is_grad_enabled() or torch._C._are_functorch_transforms_active()


class _Moments(Function):
    @staticmethod
    def forward(features: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = _in_slabs(_corrected_two_pass, features)
        return mean, variance

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(inputs[0], output[0])

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], features: Tensor) -> tuple[tuple[Tensor, Tensor], int]:
        (flat,) = _as_samples(info.batch_size, in_dims, features)
        mean, variance = moments(flat)
        return (_apart(info.batch_size, mean), _apart(info.batch_size, variance)), 0

    @staticmethod
    def backward(ctx: Any, by_mean: Tensor, by_variance: Tensor) -> Tensor:
        features, mean = ctx.saved_tensors
        places = features.shape[2] * features.shape[3]
        return affine(features, mean, by_variance * (2 / places), by_mean / places)


class _Affine(Function):
    @staticmethod
    def forward(features: Tensor, centre: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        return (features - _over_map(centre)).mul_(_over_map(scale)).add_(_over_map(offset))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], *inputs: Tensor) -> tuple[Tensor, int]:
        changed = affine(*_as_samples(info.batch_size, in_dims, *inputs))
        return _apart(info.batch_size, changed), 0

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        features, centre, scale = ctx.saved_tensors
        by_features = gradient * _over_map(scale) if ctx.needs_input_grad[0] else None
        by_offset = gradient.sum(dim=(2, 3))
        by_scale = _in_slabs(_weighed, features, gradient, centre)[0] if ctx.needs_input_grad[2] else None
        return by_features, -scale * by_offset, by_scale, by_offset


def _as_samples(count: int, dims: Sequence[int | None], *tensors: Tensor) -> list[Tensor]:
    # torch.vmap's dimension as more samples, since every sample is treated alone
    stacked = [
        tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, dims, strict=True)
    ]
    return [tensor.flatten(0, 1) for tensor in stacked]


def _apart(count: int, samples: Tensor) -> Tensor:
    return samples.view(count, -1, *samples.shape[1:])


def _corrected_two_pass(features: Tensor) -> tuple[Tensor, Tensor]:
    # The first mean is off by its rounding; what is left of the centred values says by how much.
    # So a constant channel has exactly its value as mean and exactly 0 as variance.
    rounded = features.mean(dim=(2, 3))
    centred = features - _over_map(rounded)
    missed = centred.mean(dim=(2, 3))
    centred -= _over_map(missed)
    return rounded + missed, centred.square_().mean(dim=(2, 3))


def _weighed(features: Tensor, gradient: Tensor, centre: Tensor) -> tuple[Tensor]:
    return (((features - _over_map(centre)) * gradient).sum(dim=(2, 3)),)


def _in_slabs(formula: Callable[..., tuple[Tensor, ...]], features: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """`formula`, which treats every sample alone, over as many samples at a time as fit into a slab."""
    if features.numel() < _NUMBERS_WORTH_SLABS:
        return formula(features, *others)
    samples = max(1, _SLAB // features[0].numel())
    slabs = zip(*(torch.split(tensor, samples) for tensor in (features, *others)), strict=True)
    parts = [formula(*slab) for slab in slabs]
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def _over_map(statistic: Tensor) -> Tensor:
    return statistic[:, :, None, None]
