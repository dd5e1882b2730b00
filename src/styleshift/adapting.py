"""Adapters: what any module gives, seen as feature maps [B, C, H, W], and put back as it came (paper Sec. 3.1).

    Adapter       one module's outputs <-> feature maps
    adapter_of    which adapter a module of a model needs, read off the model's own modules

The paper's formulas are about feature maps. Three layouts are understood:

    nchw      [B, C, H, W]    convolutional networks
    nhwc      [B, H, W, C]    channels-last transformers such as Swin
    tokens    [B, T, C]       ViT: patch tokens, seen as a map of T x 1 places; prefix tokens are left alone

Reading: the paper has no token layers. A token's place is a pixel, so statistics go over the patch tokens; class,
distillation and register tokens are no places of the image and keep their values.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from styleshift.style.shapes import Features

Layout = Literal["nchw", "nhwc", "tokens"]
AskedLayout = Literal["auto", "nchw", "nhwc", "tokens"]

_DIMENSIONS: Mapping[str, int] = {"nchw": 4, "nhwc": 4, "tokens": 3}
_SECOND_IS_CHANNELS = (nn.Conv2d, nn.ConvTranspose2d, nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.InstanceNorm2d)
_PREFIX_PARAMETERS = ("class_token", "cls_token", "dist_token", "distillation_token", "reg_token", "register_tokens")


class NoFeatureMapError(ValueError):
    """A module's output is nothing that a style layer can take."""


@dataclass(frozen=True)
class Adapter:
    """Between one module's outputs and feature maps; made by `adapter_of`."""

    name: str
    asked: AskedLayout
    prefix_tokens: int | None
    model_widths: "Widths"
    own_widths: "Widths"

    def features(self, output: object) -> Features:
        """The feature maps inside `output`: itself, or the first element of a tuple, list or mapping."""
        held = self._held(output)
        layout = self._layout(held)
        if layout == "nhwc":
            return held.permute(0, 3, 1, 2)
        if layout == "tokens":
            return held[:, self._prefix(held) :].transpose(1, 2).unsqueeze(-1)
        return held

    def put_back(self, output: object, features: Features) -> object:
        """`output` with its feature maps replaced: same container, layout, dtype and memory format."""
        held = self._held(output)
        return _replaced(output, _like(held, self._restored(held, features)))

    def layout_of(self, output: object) -> Layout:
        """How `output` is laid out; an error where that cannot be told for certain."""
        return self._layout(self._held(output))

    def _layout(self, held: Tensor) -> Layout:
        if self.asked != "auto":
            if held.ndim != _DIMENSIONS[self.asked]:
                raise NoFeatureMapError(
                    f"layout={self.asked!r} needs {_DIMENSIONS[self.asked]} dimensions; "
                    f"module {self.name!r} gives {_shape(held)}."
                )
            return self.asked
        if held.ndim == 3:
            return self._tokens(held)
        if held.ndim == 4:
            return self._channels_first_or_last(held)
        raise NoFeatureMapError(
            f"A style layer takes [B, C, H, W], [B, H, W, C] or [B, T, C]; module {self.name!r} gives {_shape(held)}."
        )

    def _channels_first_or_last(self, held: Tensor) -> Layout:
        if not self.model_widths.last:
            return "nchw"
        for widths in (self.model_widths, self.own_widths):
            first, last = held.shape[1] in widths.second, held.shape[3] in widths.last
            if first != last:
                return "nchw" if first else "nhwc"
        raise NoFeatureMapError(
            f"Module {self.name!r} gives {_shape(held)}, and the model's own layers do not tell whether its channels "
            "are the second or the last dimension. Say layout='nchw' or layout='nhwc'."
        )

    def _tokens(self, held: Tensor) -> Layout:
        # one image without its batch is three-dimensional too, all the way through a convolutional network
        if self.prefix_tokens is None and held.shape[2] not in self.model_widths.last:
            raise NoFeatureMapError(
                f"Module {self.name!r} gives {_shape(held)}, and the model's own layers do not tell whether these are "
                "tokens [B, T, C]. Say layout='tokens', or give images as a batch [B, C, H, W]."
            )
        return "tokens"

    def _prefix(self, held: Tensor) -> int:
        tokens = held.shape[1]
        if self.prefix_tokens is None:
            if isqrt(tokens) ** 2 != tokens:
                raise NoFeatureMapError(
                    f"Module {self.name!r} gives {tokens} tokens, no square of patches, and the model does not tell "
                    "how many of them are class or register tokens. Say prefix_tokens=."
                )
            return 0
        if not 0 <= self.prefix_tokens < tokens:
            raise NoFeatureMapError(
                f"Of the {tokens} tokens that module {self.name!r} gives, prefix_tokens={self.prefix_tokens} leaves "
                "no patch. It needs to be 0 or more, and less than the number of tokens."
            )
        return self.prefix_tokens

    def _restored(self, held: Tensor, features: Features) -> Tensor:
        layout = self._layout(held)
        if layout == "nhwc":
            return features.permute(0, 2, 3, 1)
        if layout == "tokens":
            patches, prefix = features.squeeze(-1).transpose(1, 2), self._prefix(held)
            return torch.cat([held[:, :prefix], patches.to(held.dtype)], dim=1) if prefix else patches
        return features

    def _held(self, output: object) -> Tensor:
        held = _first_tensor(output)
        if held is None or not held.is_floating_point():
            given = f"a {type(output).__name__} without a tensor first" if held is None else f"{held.dtype}"
            raise NoFeatureMapError(f"A style layer takes floating-point maps; module {self.name!r} gives {given}.")
        return held


def adapter_of(
    model: nn.Module,
    name: str,
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
    model_widths: "Widths | None" = None,
) -> Adapter:
    """The adapter for what the module called `name` gives.

    layout: "auto" tells it from the output's dimensions and the model's own layers, or says that it cannot.
    prefix_tokens: how many tokens of [B, T, C] come before the patches; None asks the model (timm's
        `num_prefix_tokens`, or its class, distillation and register token parameters).
    model_widths: `Widths.of(model)` where it is known already.
    """
    if layout not in get_args(AskedLayout):
        raise ValueError(f"layout needs to be one of {', '.join(get_args(AskedLayout))}; got {layout!r}.")
    return Adapter(
        name=name,
        asked=layout,
        prefix_tokens=_prefix_tokens_of(model) if prefix_tokens is None else prefix_tokens,
        model_widths=Widths.of(model) if model_widths is None else model_widths,
        own_widths=Widths.of(model.get_submodule(name)),
    )


@dataclass(frozen=True)
class Widths:
    """Channel counts that a network's own layers speak of: as second dimension, and as last."""

    second: tuple[int, ...]
    last: tuple[int, ...]

    @classmethod
    def of(cls, part: nn.Module) -> "Widths":
        """Convolutions and batch norms count along dimension 1, layer norms along the last."""
        modules = list(part.modules())
        return cls(
            tuple(sorted({width for module in modules for width in _second_widths(module)})),
            tuple(sorted({width for module in modules for width in _last_widths(module)})),
        )


def _second_widths(module: nn.Module) -> Iterator[int]:
    if isinstance(module, _SECOND_IS_CHANNELS):
        for counted in ("in_channels", "out_channels", "num_features", "num_channels"):
            width = getattr(module, counted, None)
            if isinstance(width, int):
                yield width
    elif "2d" in type(module).__name__:  # LayerNorm2d of torchvision and timm: a layer norm over dimension 1
        yield from _layer_norm_width(module)


def _last_widths(module: nn.Module) -> Iterator[int]:
    if "2d" not in type(module).__name__:
        yield from _layer_norm_width(module)


def _layer_norm_width(module: nn.Module) -> Iterator[int]:
    if isinstance(module, nn.LayerNorm | nn.RMSNorm) and len(module.normalized_shape) == 1:
        yield module.normalized_shape[0]


def _prefix_tokens_of(model: nn.Module) -> int | None:
    for module in model.modules():
        count = getattr(module, "num_prefix_tokens", None)
        if isinstance(count, int):
            return count
    counts = [
        parameter.shape[-2]
        for name, parameter in model.named_parameters()
        if name.rpartition(".")[2] in _PREFIX_PARAMETERS and parameter.ndim >= 2
    ]
    return sum(counts) if counts else None


def _first_tensor(output: object) -> Tensor | None:
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        return _first_tensor(next(iter(output.values()), None))
    if isinstance(output, tuple | list) and output:
        return _first_tensor(output[0])
    return None


def _replaced(output: Any, tensor: Tensor) -> object:
    if isinstance(output, Tensor):
        return tensor
    if isinstance(output, Mapping):
        key = next(iter(output))
        changed: Any = copy.copy(output)
        changed[key] = _replaced(output[key], tensor)
        return changed
    if isinstance(output, list):
        changed = copy.copy(output)
        changed[0] = _replaced(output[0], tensor)
        return changed
    return _tuple_like(output, [_replaced(output[0], tensor), *output[1:]])


def _tuple_like(original: tuple[object, ...], elements: Sequence[object]) -> tuple[object, ...]:
    make = getattr(type(original), "_make", type(original))  # a named tuple takes its fields one by one
    made: tuple[object, ...] = make(elements)
    return made


def _like(held: Tensor, result: Tensor) -> Tensor:
    result = result.to(held.dtype)
    for memory_format in (torch.contiguous_format, torch.channels_last):
        if held.is_contiguous(memory_format=memory_format):
            return result.contiguous(memory_format=memory_format)
    return result


def _shape(tensor: Tensor) -> list[int]:
    return list(tensor.shape)
