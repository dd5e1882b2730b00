"""Normalisation layers at test time: what methods change in them, each change a function.

    norms_of               those that a method may touch
    own_affine             their scales and shifts, ready to learn
    use_batch_statistics   BatchNorm as in training: each batch's own mean and variance, the running ones dropped
    mix_statistics         BatchNorm with a share of each batch's statistics and the rest of the sources'

All of them change a body (`wrapping.body_of`), never the model that it was made from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from styleshift.adaptation.wrapping import own_parameter

Norms = Literal["auto", "batch", "layer"]
_BATCH = (nn.modules.batchnorm._BatchNorm,)
_LAYER = (nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)


def norms_of(body: nn.Module, kind: Norms = "auto", skip: Sequence[str] = ()) -> list[nn.Module]:
    """The BatchNorm layers ("batch"), those that look at one sample alone ("layer"), or the first kind that there is.

    skip: names of modules whose norms are left alone, with all below them.
    """
    if kind not in ("auto", "batch", "layer"):
        raise ValueError(f"norms is 'auto', 'batch' or 'layer'; got {kind!r}")
    kinds = {"batch": (_BATCH,), "layer": (_LAYER,), "auto": (_BATCH, _LAYER)}[kind]
    kept = [(name, module) for name, module in body.named_modules() if not _is_below(name, skip)]
    for types in kinds:
        found: list[nn.Module] = [module for _, module in kept if isinstance(module, types)]
        if found:
            return found
    looked_for = {"batch": "BatchNorm", "layer": "LayerNorm or GroupNorm", "auto": "normalisation"}[kind]
    beside = f" outside {', '.join(skip)}" if skip else ""
    raise ValueError(f"{type(body).__name__} has no {looked_for} layer{beside}, which is what this method changes")


def own_affine(norms: Iterable[nn.Module]) -> list[nn.Parameter]:
    """Their scales and shifts, in memory of their own and ready to learn. ValueError where there are none."""
    found = [
        own_parameter(norm, name)
        for norm in norms
        for name in ("weight", "bias")
        if getattr(norm, name, None) is not None
    ]
    if not found:
        raise ValueError(
            "the normalisation layers have no scale and shift (affine=False), so there is nothing to learn"
        )
    return found


def use_batch_statistics(norms: Iterable[nn.Module]) -> None:
    """BatchNorm layers normalise by each batch's own statistics; other norms, which always do, stay as they are."""
    for norm in norms:
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.track_running_stats = False
            norm.running_mean = norm.running_var = norm.num_batches_tracked = None
            norm.register_forward_pre_hook(_expect_more_than_one_value)


def mix_statistics(norms: Iterable[nn.Module], share: float | None, prior: float) -> None:
    """BatchNorm layers normalise by `share` of each batch's mean and variance and the rest of the running ones.

    share: in [0, 1]; None takes n / (prior + n) for a batch of n images.
    """
    for norm in norms:
        assert isinstance(norm, nn.modules.batchnorm._BatchNorm), "only BatchNorm has statistics to mix"
        if norm.running_mean is None or norm.running_var is None:
            raise ValueError(
                "mixing needs the sources' statistics, and a BatchNorm of this model keeps none "
                "(track_running_stats=False)"
            )
        norm.register_forward_pre_hook(_Mixing(norm.running_mean, norm.running_var, share, prior))


@dataclass(eq=False)
class _Mixing:
    """Sets the statistics that a BatchNorm in eval mode is about to normalise by."""

    mean: Tensor
    variance: Tensor
    share: float | None
    prior: float

    def __call__(self, norm: nn.Module, args: tuple[Any, ...]) -> None:
        features = args[0]
        share = self.share if self.share is not None else len(features) / (self.prior + len(features))
        if share == 1:
            _expect_more_than_one_value(norm, args)
        wide = features.detach().to(self.mean.dtype)
        variance, mean = torch.var_mean(wide, dim=[0, *range(2, wide.ndim)], correction=0)
        norm.running_mean = torch.lerp(self.mean, mean, share)
        norm.running_var = torch.lerp(self.variance, variance, share)


def _expect_more_than_one_value(norm: nn.Module, args: tuple[Any, ...]) -> None:
    features = args[0]
    if features.numel() == features.shape[1]:
        raise ValueError(
            "a batch's own statistics need more than one value a channel; a BatchNorm here gets "
            f"{list(features.shape)}, one image of one place, which it would turn into a constant. Give more images "
            "at once, or larger ones, or take a method that needs no batch, such as style_shift or t3a"
        )


def _is_below(name: str, above: Iterable[str]) -> bool:
    return any(name == other or name.startswith(f"{other}.") for other in above)
