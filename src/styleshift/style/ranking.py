"""Ranks: the order of the values of a sample's channel (paper Sec. 3.1, EFDM's tau).

    sorted_with_places   values in ascending order, and where each stood
    mixed_by_rank        values mixed with a partner's of the same rank     what EFDMix does in one piece

Reading: equal values rank by position, as a stable sort does, and -0 equals 0.
"""

from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from styleshift.style import sorting


def sorted_with_places(
    values: Float[Tensor, "*rows n"],
) -> tuple[Float[Tensor, "*rows n"], Integer[Tensor, "*rows n"]]:
    """The last axis in ascending order (NaN last, ties by position), and the position each value had.

    The gradient of a sorted value goes to where it stood.
    """
    if values.ndim == 0 or not values.is_floating_point():
        raise ValueError(f"ranks are taken along the last axis of floating-point values; got {_seen(values)}.")
    ascending: Tensor
    ascending, places = _sorted_with_places(wide(values))
    return ascending.to(values.dtype), places


def mixed_by_rank(
    values: Float[Tensor, "B C n"], partners: Integer[Tensor, "B"], own_share: Float[Tensor, "B"]
) -> Float[Tensor, "B C n"]:
    """own_share * values + (1 - own_share) * the values of the same rank in the partner sample's channel.

    The gradient to the content is 1, to the partner's values 1 - own_share: only the order is constant (EFDMix).

    partners: the index of each sample's partner in the batch.
    own_share: how much of a sample stays its own, in [0, 1].
    """
    backward_will_come = torch.is_grad_enabled() and values.requires_grad
    share = own_share.to(device=values.device, dtype=wide(values).dtype)
    mixed: Tensor
    lenders = partners.to(device=values.device, dtype=torch.int64)
    mixed, _ = _mixed_by_rank(wide(values), lenders, share, backward_will_come)
    return mixed.to(values.dtype)


def wide(values: Tensor) -> Tensor:
    """In float32 at least, which holds every half-precision number exactly."""
    return values.float() if values.dtype.itemsize < 4 else values


@torch.library.custom_op(
    "styleshift::sorted_with_places", mutates_args=(), schema="(Tensor values) -> (Tensor, Tensor)"
)
def _sorted_with_places(values: Tensor) -> tuple[Tensor, Tensor]:
    if not _has_fast_keys(values):
        return torch.sort(values, dim=-1, stable=True)
    rows = values.contiguous().reshape(-1, values.shape[-1])
    ascending, places = torch.empty_like(rows), torch.empty_like(rows, dtype=torch.int64)
    sorting.sort_rows(rows.numpy(), ascending.numpy(), places.numpy())
    return ascending.view(values.shape), places.view(values.shape)


@_sorted_with_places.register_fake
def _(values: Tensor) -> tuple[Tensor, Tensor]:
    ascending = torch.empty_like(values, memory_format=torch.contiguous_format)
    return ascending, torch.empty_like(ascending, dtype=torch.int64)


def _keep_places(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
    _, places = output
    ctx.mark_non_differentiable(places)
    ctx.save_for_backward(places)


def _back_to_places(ctx: Any, by_ascending: Tensor, by_places: Tensor | None) -> Tensor:
    (places,) = ctx.saved_tensors
    return torch.empty_like(by_ascending).scatter_(-1, places, by_ascending)


_sorted_with_places.register_autograd(_back_to_places, setup_context=_keep_places)


@torch.library.custom_op(
    "styleshift::mixed_by_rank",
    mutates_args=(),
    schema="(Tensor values, Tensor partners, Tensor own_share, bool keep_places) -> (Tensor, Tensor)",
)
def _mixed_by_rank(values: Tensor, partners: Tensor, own_share: Tensor, keep_places: bool) -> tuple[Tensor, Tensor]:
    _expect_in_batch(partners, len(values))
    places = _room_for_places(values, keep_places)
    if not _has_fast_keys(values):
        ranked, order = torch.sort(values, dim=-1, stable=True)
        mixed = torch.empty_like(ranked).scatter_(-1, order, _blend(ranked, partners, own_share))
        return mixed, order if keep_places else places
    values = values.contiguous()
    mixed = torch.empty_like(values)
    kept = places.numpy() if keep_places else None
    sorting.mix_ranks(values.numpy(), partners.numpy(), own_share.numpy(), mixed.numpy(), kept)
    return mixed, places


@_mixed_by_rank.register_fake
def _(values: Tensor, partners: Tensor, own_share: Tensor, keep_places: bool) -> tuple[Tensor, Tensor]:
    return _fresh(values), _room_for_places(values, keep_places)


@torch.library.custom_op(
    "styleshift::mixed_by_rank_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor partners, Tensor own_share, Tensor places) -> Tensor",
)
def _mixed_by_rank_backward(gradient: Tensor, partners: Tensor, own_share: Tensor, places: Tensor) -> Tensor:
    if not _has_fast_keys(gradient):
        lent = (1 - own_share)[:, None, None] * gradient.gather(-1, places)
        received = torch.zeros_like(lent).index_add_(0, partners, lent)
        return torch.empty_like(received).scatter_(-1, places, received) + gradient
    gradient = gradient.contiguous()
    by_values = torch.empty_like(gradient)
    arrays = (tensor.numpy() for tensor in (gradient, partners, own_share, places, by_values))
    sorting.mix_ranks_backward(*arrays)
    return by_values


@_mixed_by_rank_backward.register_fake
def _(gradient: Tensor, partners: Tensor, own_share: Tensor, places: Tensor) -> Tensor:
    return _fresh(gradient)


def _keep_mixing(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, bool], output: tuple[Tensor, Tensor]) -> None:
    _, partners, own_share, _ = inputs
    _, places = output
    ctx.mark_non_differentiable(places)
    ctx.save_for_backward(partners, own_share, places)


def _pull_mixing(ctx: Any, by_mixed: Tensor, by_places: Tensor | None) -> tuple[Tensor, None, None, None]:
    return _mixed_by_rank_backward(by_mixed, *ctx.saved_tensors), None, None, None


def _keep_pulling(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:])


def _push_mixing(ctx: Any, by_gradient: Tensor) -> tuple[Tensor, None, None, None]:
    # the transpose of the transpose: along a direction, the mixing itself
    partners, own_share, places = ctx.saved_tensors
    order = places.transpose(0, 1).long() if _has_fast_keys(by_gradient) else places
    lent = (1 - own_share)[:, None, None] * by_gradient.gather(-1, order)[partners]
    return by_gradient + torch.empty_like(lent).scatter_(-1, order, lent), None, None, None


_mixed_by_rank.register_autograd(_pull_mixing, setup_context=_keep_mixing)
_mixed_by_rank_backward.register_autograd(_push_mixing, setup_context=_keep_pulling)


def _blend(ranked: Tensor, partners: Tensor, own_share: Tensor) -> Tensor:
    share = own_share[:, None, None]
    return share * ranked + (1 - share) * ranked[partners]


def _expect_in_batch(partners: Tensor, samples: int) -> None:
    # other devices stop by themselves at such an index; to look at it here would mean to wait for them
    if partners.device.type == "cpu" and not ((partners >= 0) & (partners < samples)).all():
        raise ValueError(
            f"partners are indices of samples, from 0 to {samples - 1}; got {partners.tolist()}. "
            f"Choose them by torch.randperm({samples})."
        )


def _room_for_places(values: Tensor, wanted: bool) -> Tensor:
    """Empty places as the kernel at hand writes them; none at all where no backward pass will ask."""
    samples, channels, length = values.shape
    if not _has_fast_keys(values):
        return values.new_empty((samples if wanted else 0, channels, length), dtype=torch.int64)
    smallest = torch.uint16 if length <= 1 << 16 else torch.int32
    return values.new_empty((channels if wanted else 0, samples, length), dtype=smallest)


def _has_fast_keys(values: Tensor) -> bool:
    # a position in the batch has half a key
    return values.device.type == "cpu" and values.dtype == torch.float32 and 0 < values.numel() < 2**32


def _fresh(like: Tensor) -> Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def _seen(values: Tensor) -> str:
    return f"{values.dtype} {list(values.shape)}"
