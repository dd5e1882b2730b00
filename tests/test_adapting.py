"""Adapters: any module's output, seen as feature maps and put back as it came."""

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from styleshift.adapting import Adapter, NoFeatureMapError, Widths, adapter_of


class ModelOutput(OrderedDict[str, Any]):
    """A mapping whose entries are attributes too, as transformers gives."""

    def __setitem__(self, key: str, value: object) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Pair(NamedTuple):
    features: Tensor
    extra: str


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of NCHW, as in torchvision and timm."""


class Vit(nn.Module):
    """As much of a vision transformer as tells about its tokens."""

    def __init__(self, **attributes: object) -> None:
        super().__init__()
        self.blocks = nn.Identity()
        for name, value in attributes.items():
            setattr(self, name, nn.Parameter(value) if isinstance(value, Tensor) else value)


CONV_NET = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.ReLU())
SWIN = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8)))
CONVNEXT = nn.Sequential(nn.Sequential(nn.Conv2d(8, 8, 7, groups=8), nn.LayerNorm(8), nn.Linear(8, 32)))


def adapter(model: nn.Module = CONV_NET, name: str = "0", **settings: Any) -> Adapter:
    return adapter_of(model, name, **settings)


@pytest.mark.parametrize(
    ("model", "name", "shape", "layout"),
    [
        (CONV_NET, "2", (2, 8, 5, 5), "nchw"),
        (CONV_NET, "2", (2, 9, 5, 8), "nchw"),  # nothing in this model counts along the last dimension
        (SWIN, "1", (2, 5, 5, 8), "nhwc"),
        (SWIN, "0", (2, 8, 5, 5), "nchw"),
        (SWIN, "1", (2, 8, 8, 8), "nhwc"),  # the convolution is not in this module
        (CONVNEXT, "0", (2, 8, 5, 5), "nchw"),
        (nn.Sequential(nn.Conv2d(3, 8, 1), LayerNorm2d(8)), "1", (2, 8, 5, 8), "nchw"),
        (nn.Sequential(nn.RMSNorm(8)), "0", (2, 5, 5, 8), "nhwc"),
        (Vit(num_prefix_tokens=1), "blocks", (2, 17, 8), "tokens"),
        (Vit(norm=nn.LayerNorm(8)), "blocks", (2, 16, 8), "tokens"),
    ],
)
def test_the_models_own_layers_tell_the_layout(
    model: nn.Module, name: str, shape: tuple[int, ...], layout: str
) -> None:
    assert adapter(model, name).layout_of(torch.zeros(shape)) == layout


@pytest.mark.parametrize("shape", [(2, 8, 8, 8), (2, 5, 5, 5)], ids=["both", "neither"])
def test_a_layout_that_cannot_be_told_is_asked_for(shape: tuple[int, ...]) -> None:
    with pytest.raises(NoFeatureMapError, match=r"Say layout='nchw' or layout='nhwc'"):
        adapter(CONVNEXT).layout_of(torch.zeros(shape))


def test_three_dimensions_in_a_network_without_tokens_are_no_tokens() -> None:
    with pytest.raises(NoFeatureMapError, match=r"gives \[8, 4, 4\].* Say layout='tokens', or give images as a batch"):
        adapter().layout_of(torch.zeros(8, 4, 4))


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_layout_that_is_said_is_taken(layout: str) -> None:
    assert adapter(CONVNEXT, layout=layout).layout_of(torch.zeros(2, 8, 8, 8)) == layout


def test_a_layout_of_other_dimensions_is_refused() -> None:
    with pytest.raises(NoFeatureMapError, match=r"layout='tokens' needs 3 dimensions; module '0' gives \[2, 8, 5, 5\]"):
        adapter(layout="tokens").features(torch.zeros(2, 8, 5, 5))


@pytest.mark.parametrize("shape", [(2, 8), (2, 8, 3, 5, 5)])
def test_outputs_that_are_no_maps_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(NoFeatureMapError, match=r"takes \[B, C, H, W\], \[B, H, W, C\] or \[B, T, C\]"):
        adapter().features(torch.zeros(shape))


@pytest.mark.parametrize(
    ("output", "given"),
    [(torch.zeros(2, 8, 5, 5, dtype=torch.int64), "torch.int64"), ((), "a tuple without a tensor"), ("x", "a str")],
    ids=["integers", "empty", "string"],
)
def test_outputs_that_are_no_floating_point_are_refused(output: object, given: str) -> None:
    with pytest.raises(NoFeatureMapError, match=f"module '0' gives {given}"):
        adapter().features(output)


def test_maps_with_channels_last_are_seen_with_channels_first() -> None:
    output = torch.randn(2, 4, 5, 8)
    assert torch.equal(adapter(SWIN, "1").features(output), output.permute(0, 3, 1, 2))


@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_patch_tokens_are_a_map_one_place_wide(prefix: int) -> None:
    output = torch.randn(2, prefix + 6, 8)
    features = adapter(prefix_tokens=prefix).features(output)
    assert features.shape == (2, 8, 6, 1)
    assert torch.equal(features[0, :, 4, 0], output[0, prefix + 4])


@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_prefix_tokens_are_left_alone(prefix: int) -> None:
    output = torch.randn(2, prefix + 6, 8)
    through = adapter(prefix_tokens=prefix)
    changed = through.put_back(output, through.features(output) + 1)
    assert isinstance(changed, Tensor)
    assert torch.equal(changed[:, :prefix], output[:, :prefix])
    assert torch.equal(changed[:, prefix:], output[:, prefix:] + 1)


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (Vit(num_prefix_tokens=5), 5),
        (Vit(num_prefix_tokens=0, cls_token=torch.zeros(1, 1, 8)), 0),
        (Vit(class_token=torch.zeros(1, 1, 8)), 1),
        (Vit(cls_token=torch.zeros(1, 1, 8), dist_token=torch.zeros(1, 1, 8)), 2),
        (Vit(cls_token=torch.zeros(1, 1, 8), register_tokens=torch.zeros(1, 4, 8)), 5),
        (nn.ModuleDict({"blocks": nn.Identity(), "inner": Vit(class_token=torch.zeros(1, 1, 8))}), 1),
    ],
    ids=["timm", "timm without", "torchvision", "distilled", "registers", "wrapped"],
)
def test_the_model_tells_how_many_tokens_come_before_the_patches(model: nn.Module, count: int) -> None:
    assert adapter(model, "blocks").features(torch.zeros(2, count + 9, 8)).shape == (2, 8, 9, 1)


def test_a_count_that_is_given_counts() -> None:
    vit = Vit(num_prefix_tokens=1)
    assert adapter(vit, "blocks", prefix_tokens=2).features(torch.zeros(2, 11, 8)).shape == (2, 8, 9, 1)


def test_a_square_of_tokens_is_all_patches() -> None:
    assert adapter(Vit(), "blocks", layout="tokens").features(torch.zeros(2, 16, 8)).shape == (2, 8, 16, 1)


def test_a_count_that_cannot_be_told_is_asked_for() -> None:
    with pytest.raises(NoFeatureMapError, match=r"gives 17 tokens, no square .* Say prefix_tokens="):
        adapter(Vit(), "blocks", layout="tokens").features(torch.zeros(2, 17, 8))


@pytest.mark.parametrize("prefix", [-1, 6])
def test_a_prefix_that_leaves_no_patch_is_refused(prefix: int) -> None:
    with pytest.raises(NoFeatureMapError, match=f"prefix_tokens={prefix} leaves no patch"):
        adapter(prefix_tokens=prefix).features(torch.zeros(2, 6, 8))


def test_the_longest_prefix_leaves_one_patch() -> None:
    assert adapter(prefix_tokens=5).features(torch.zeros(2, 6, 8)).shape == (2, 8, 1, 1)


MAPS = torch.arange(2.0 * 8 * 3 * 3).reshape(2, 8, 3, 3)


@pytest.mark.parametrize(
    "output",
    [
        (MAPS, "extra"),
        [MAPS, "extra"],
        {"features": MAPS, "extra": 1},
        Pair(MAPS, "extra"),
        ((MAPS, "inner"), "outer"),
        ModelOutput(last_hidden_state=MAPS, extra=1),
    ],
    ids=lambda output: type(output).__name__,
)
def test_a_container_comes_back_as_one_of_its_kind_and_the_given_one_is_not_changed(output: Any) -> None:
    changed: Any = adapter().put_back(output, MAPS + 1)
    assert type(changed) is type(output)
    assert torch.equal(adapter().features(changed), MAPS + 1)
    assert torch.equal(adapter().features(output), MAPS)
    assert len(changed) == len(output)


def test_what_stands_beside_the_features_stays() -> None:
    assert adapter().put_back(((MAPS, "inner"), "outer"), MAPS + 1)[1] == "outer"  # type: ignore[index]


def test_an_attribute_of_a_model_output_changes_with_its_entry() -> None:
    changed: Any = adapter().put_back(ModelOutput(last_hidden_state=MAPS), MAPS + 1)
    assert torch.equal(changed.last_hidden_state, MAPS + 1)


@given(
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
    settings=st.sampled_from([{}, {"layout": "nhwc"}, {"layout": "tokens", "prefix_tokens": 2}]),
    channels_last=st.booleans(),
)
def test_dtype_shape_and_memory_format_come_back(
    dtype: torch.dtype, settings: dict[str, Any], channels_last: bool
) -> None:
    output = torch.ones((2, 7, 8) if settings.get("layout") == "tokens" else (2, 8, 3, 5), dtype=dtype)
    if channels_last and output.ndim == 4:
        output = output.contiguous(memory_format=torch.channels_last)
    through = adapter(**settings)
    changed = through.put_back(output, through.features(output).float().contiguous() * 2)
    assert isinstance(changed, Tensor)
    assert (changed.dtype, changed.shape, changed.stride()) == (dtype, output.shape, output.stride())
    assert changed.flatten()[-1] == 2


def test_gradients_pass_through_both_ways() -> None:
    output = torch.randn(2, 7, 8, requires_grad=True)
    through = adapter(prefix_tokens=1)
    changed = through.put_back((output,), through.features((output,)) * 3)
    changed[0].sum().backward()  # type: ignore[index]
    assert output.grad is not None
    assert torch.equal(output.grad[0, :, 0], torch.tensor([1.0, 3, 3, 3, 3, 3, 3]))


def test_widths_are_what_convolutions_and_norms_speak_of() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.GroupNorm(2, 12), LayerNorm2d(10), nn.LayerNorm(6))
    assert Widths.of(model) == Widths(second=(3, 8, 10, 12), last=(6,))
