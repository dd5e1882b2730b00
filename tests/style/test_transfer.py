"""Style transfer: AdaIN (Eq. 3) and EFDM against the formulas in plain Python, and what they keep."""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jaxtyping import config
from torch import Tensor, nn

from styleshift.style.statistics import Style, style_of
from styleshift.style.transfer import adain, as_maps, efdm

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LAYOUTS = [torch.contiguous_format, torch.channels_last]
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))
ODD = [-math.inf, -0.0, 0.0, 0.0, 1.0, 1.0, math.inf, math.nan]

Drawn: TypeAlias = Callable[..., Tensor]


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As in production: types unchecked. The check would come before our own words."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tied(*shape: int, seed: int = 0) -> Tensor:
    """Halves from -1 to 1, zeros of both signs: exact in every dtype, and most are equal to others."""
    return (noise(*shape, seed=seed) * 2).round().clamp(-2, 2) / 2


def odd(*shape: int, seed: int = 0) -> Tensor:
    """Ties, zeros of both signs, infinities, NaN."""
    chosen = torch.randint(len(ODD), shape, generator=torch.Generator().manual_seed(seed))
    return torch.tensor(ODD, dtype=torch.float64)[chosen]


def style(rows: int, channels: int, seed: int = 0) -> Style:
    return Style(noise(rows, channels, seed=seed + 1000), noise(rows, channels, seed=seed + 2000).abs() + 0.1)


def plain_adain(features: Tensor, style: Style) -> Tensor:
    """Eq. 3 with Eqs. 1 and 2, letter by letter, with 1e-6 below the root."""
    x, restyled = features.flatten(2).tolist(), torch.empty(features.shape, dtype=torch.float64).flatten(2)
    means, stds = style.mean.tolist(), style.std.tolist()
    for b, sample in enumerate(x):
        row = b if len(means) > 1 else 0
        for c, channel in enumerate(sample):
            mu = sum(channel) / len(channel)
            sigma = math.sqrt(sum((value - mu) ** 2 for value in channel) / len(channel) + 1e-6)
            for place, value in enumerate(channel):
                restyled[b, c, place] = stds[row][c] * (value - mu) / sigma + means[row][c]
    return restyled.view(features.shape)


def plain_order(row: list[float]) -> list[int]:
    """Positions by ascending value, NaN last; Python's sort leaves equal ones in order of position."""
    return sorted(range(len(row)), key=lambda i: (math.isnan(row[i]), 0.0 if math.isnan(row[i]) else row[i]))


def plain_efdm(content: Tensor, reference: Tensor) -> Tensor:
    """EFDM(x, y)[tau_i] = y[kappa_i], letter by letter."""
    x, y = content.flatten(2).tolist(), reference.flatten(2).tolist()
    matched = torch.empty(content.shape, dtype=torch.float64).flatten(2)
    for b, sample in enumerate(x):
        for c, channel in enumerate(sample):
            for tau, kappa in zip(plain_order(channel), plain_order(y[b][c]), strict=True):
                matched[b, c, tau] = y[b][c][kappa]
    return matched.view(content.shape)


# adain


def test_1_3_in_mean_10_and_deviation_2_is_8_12() -> None:
    features = torch.tensor([[[[1.0, 3.0]]]], dtype=torch.float64) * 1e3  # beside which 1e-6 is nothing
    restyled = adain(features, Style(torch.tensor([[10.0]]), torch.tensor([[2.0]])))
    torch.testing.assert_close(restyled.flatten(), torch.tensor([8.0, 12.0], dtype=torch.float64), rtol=1e-9, atol=0)


@given(
    shape=SHAPES,
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    scale=st.sampled_from([1e-4, 1.0, 1e3]),
    one_for_all=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_adain_is_eq_3(
    shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format, scale: float, one_for_all: bool, seed: int
) -> None:
    features = (noise(*shape, seed=seed) * scale).to(dtype).contiguous(memory_format=layout)
    new = style(1 if one_for_all else shape[0], shape[1], seed)
    rough = 1e-10 if dtype == torch.float64 else 1e-4 + torch.finfo(dtype).eps
    torch.testing.assert_close(adain(features, new).double(), plain_adain(features, new), rtol=rough, atol=rough)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_adain_keeps_dtype_and_memory_layout(dtype: torch.dtype, layout: torch.memory_format) -> None:
    restyled = adain(noise(2, 3, 4, 5).to(dtype).contiguous(memory_format=layout), style(2, 3))
    assert restyled.dtype == dtype
    assert restyled.is_contiguous(memory_format=layout)


@given(shape=SHAPES, scale=st.floats(1, 1e6), offset=st.floats(-1e3, 1e3), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_a_channel_that_varies_gets_the_statistics_of_the_style(
    shape: tuple[int, ...], scale: float, offset: float, seed: int
) -> None:
    features, new = noise(*shape, seed=seed) * scale + offset, style(shape[0], shape[1], seed)
    own = style_of(features)
    assume((own.std > 0.3).all())
    restyled = style_of(adain(features, new))
    torch.testing.assert_close(restyled.mean, new.mean, rtol=1e-8, atol=1e-8)
    # 1e-6 is below both roots
    torch.testing.assert_close(restyled.std, new.std, rtol=1e-4, atol=1e-4)


@given(shape=SHAPES, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_features_in_their_own_style_are_unchanged(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> None:
    features = noise(*shape, seed=seed).to(dtype)
    rough = 2 * torch.finfo(dtype).eps + 1e-12
    torch.testing.assert_close(adain(features, style_of(features)), features, rtol=rough, atol=4 * rough)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("places", [(1, 1), (13, 17)])
def test_a_constant_channel_becomes_exactly_the_mean_of_the_style(
    places: tuple[int, int], dtype: torch.dtype, value: float
) -> None:
    features = torch.full((2, 3, *places), value, dtype=dtype)
    new = Style(torch.tensor([[2.0, -0.5, 7.0]]), torch.full((1, 3), 1e3))
    assert (adain(features, new) == new.mean.to(dtype)[:, :, None, None]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_of_ten_thousand_is_restyled_without_overflow(dtype: torch.dtype) -> None:
    features, new = (noise(2, 3, 28, 28) * 1e4).to(dtype), style(2, 3)
    expected = plain_adain(features, new)
    torch.testing.assert_close(adain(features, new).double(), expected, rtol=torch.finfo(dtype).eps, atol=1e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_adain_spoils_no_channel_but_the_one_that_holds_nan_or_infinity(value: float) -> None:
    features = noise(2, 3, 4, 4)
    features[1, 2, 0, 0] = value
    expected = torch.zeros(2, 3, 4, 4, dtype=torch.bool)
    expected[1, 2] = True
    assert torch.equal(adain(features, style(2, 3)).isnan(), expected)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_samples_stay_none_in_any_style(rows: int) -> None:
    assert adain(torch.zeros(0, 3, 4, 4), style(rows, 3)).shape == (0, 3, 4, 4)


@pytest.mark.parametrize("rows", [1, 2])
def test_adain_has_exact_derivatives_to_features_mean_and_deviation(rows: int) -> None:
    def restyled(features: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return adain(features, Style(mean, std))

    inputs = [part.requires_grad_() for part in (noise(2, 2, 3, 2), *style(rows, 2))]
    assert torch.autograd.gradcheck(restyled, inputs)
    assert torch.autograd.gradgradcheck(restyled, inputs)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (2, 5), (2, 1), (1, 3)])
def test_a_style_for_other_samples_or_channels_is_refused_with_both_shapes(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"\[2, 4\], or \[1, 4\] .*rows\(index\)") as refused:
        adain(noise(2, 4, 3, 3), style(*shape))
    assert f"got mean {list(shape)} and std {list(shape)}" in str(refused.value)


def test_a_deviation_of_another_shape_than_the_mean_is_refused_with_both() -> None:
    with pytest.raises(ValueError, match=r"got mean \[2, 4\] and std \[2\]"):
        adain(noise(2, 4, 3, 3), Style(torch.zeros(2, 4), torch.ones(2)))


# efdm


def test_3_1_2_in_the_distribution_of_10_30_20_is_30_10_20() -> None:
    content, reference = torch.tensor([[[[3.0, 1.0, 2.0]]]]), torch.tensor([[[[10.0, 30.0, 20.0]]]])
    assert efdm(content, reference).tolist() == [[[[30, 10, 20]]]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_content_takes_the_values_in_order_of_position(dtype: torch.dtype) -> None:
    content = torch.tensor([[[[0.0, -0.0, 0.0, -1.0]]]], dtype=dtype)
    reference = torch.tensor([[[[4.0, 3.0, 2.0, 1.0]]]], dtype=dtype)
    assert efdm(content, reference).tolist() == [[[[2, 3, 4, 1]]]]


@given(
    shape=SHAPES,
    dtype=st.sampled_from(DTYPES),
    drawn=st.sampled_from([noise, tied, odd]),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_efdm_is_the_plain_formula(
    shape: tuple[int, ...], dtype: torch.dtype, drawn: Drawn, layouts: tuple[torch.memory_format, ...], seed: int
) -> None:
    content, reference = (
        drawn(*shape, seed=seed + i).to(dtype).contiguous(memory_format=layout) for i, layout in enumerate(layouts)
    )
    matched, expected = efdm(content, reference).double(), plain_efdm(content, reference)
    torch.testing.assert_close(matched, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_efdm_keeps_dtype_and_the_memory_layout_of_the_content(dtype: torch.dtype, layout: torch.memory_format) -> None:
    content, reference = noise(2, 3, 4, 5).to(dtype).contiguous(memory_format=layout), noise(2, 3, 4, 5).to(dtype)
    matched = efdm(content, reference)
    assert matched.dtype == dtype
    assert matched.is_contiguous(memory_format=layout)


@given(shape=SHAPES, dtype=st.sampled_from(DTYPES), drawn=st.sampled_from([noise, tied]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_features_in_their_own_distribution_are_unchanged(
    shape: tuple[int, ...], dtype: torch.dtype, drawn: Drawn, seed: int
) -> None:
    features = drawn(*shape, seed=seed).to(dtype)
    assert torch.equal(efdm(features, features), features)


@given(shape=SHAPES, dtype=st.sampled_from(DTYPES), drawn=st.sampled_from([noise, tied]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_every_channel_gets_the_values_of_the_reference_and_no_others(
    shape: tuple[int, ...], dtype: torch.dtype, drawn: Drawn, seed: int
) -> None:
    content, reference = drawn(*shape, seed=seed).to(dtype), drawn(*shape, seed=seed + 1).to(dtype)
    values = [maps.flatten(2).sort(dim=-1).values for maps in (efdm(content, reference), reference)]
    assert torch.equal(*values)


@given(shape=SHAPES, factor=st.sampled_from([0.25, 64.0]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20)
def test_only_the_order_of_the_content_counts(shape: tuple[int, ...], factor: float, seed: int) -> None:
    content, reference = noise(*shape, seed=seed), noise(*shape, seed=seed + 1)
    assert torch.equal(efdm((content * factor).exp(), reference), efdm(content, reference))


def test_no_samples_have_no_values_to_match() -> None:
    assert efdm(torch.zeros(0, 3, 4, 4), torch.zeros(0, 3, 4, 4)).shape == (0, 3, 4, 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradient_goes_to_the_value_that_was_taken(dtype: torch.dtype) -> None:
    content = torch.tensor([[[[3.0, 1.0, 2.0]]]], dtype=dtype)
    reference = torch.tensor([[[[10.0, 30.0, 20.0]]]], dtype=dtype, requires_grad=True)
    efdm(content, reference).backward(torch.tensor([[[[1.0, 2.0, 4.0]]]], dtype=dtype))
    assert reference.grad.tolist() == [[[[2, 1, 4]]]]


def test_the_content_gets_no_gradient() -> None:
    content, reference = noise(2, 3, 4, 4).requires_grad_(), noise(2, 3, 4, 4, seed=1)
    assert not efdm(content, reference).requires_grad


def test_efdm_has_exact_derivatives_to_the_reference() -> None:
    content, reference = noise(2, 2, 3, 2), noise(2, 2, 3, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda leaf: efdm(content, leaf), reference)
    assert torch.autograd.gradgradcheck(lambda leaf: efdm(content, leaf), reference)


@pytest.mark.usefixtures("unchecked")
def test_a_reference_of_another_shape_is_refused_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"one shape; got \[2, 3, 4, 4\] and \[2, 3, 4, 5\]. Resize the reference"):
        efdm(noise(2, 3, 4, 4), noise(2, 3, 4, 5))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("transfer", [lambda maps: adain(maps, style(1, 3)), lambda maps: efdm(maps, maps)])
@pytest.mark.parametrize("maps", [torch.zeros(3, 4, 4), torch.zeros(2, 3, 4, 4, dtype=torch.int64)])
def test_what_is_no_feature_map_is_refused_with_type_and_shape(transfer: Drawn, maps: Tensor) -> None:
    with pytest.raises(ValueError, match=r"\[B, C, H, W\].* Attach to a layer that gives maps") as refused:
        transfer(maps)
    assert f"got {maps.dtype} {list(maps.shape)}" in str(refused.value)


@pytest.mark.usefixtures("unchecked")
def test_a_reference_of_whole_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"floating point \[B, C, H, W\].* got torch.int64 \[2, 3, 4, 4\]"):
        efdm(noise(2, 3, 4, 4), torch.zeros(2, 3, 4, 4, dtype=torch.int64))


# as_maps


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_become_maps_in_the_layout_of_those_they_came_from(layout: torch.memory_format) -> None:
    like = noise(2, 3, 4, 5).contiguous(memory_format=layout)
    maps = as_maps(like.flatten(2), like)
    assert torch.equal(maps, like)
    assert maps.stride() == like.stride()


# traced


class Transfer(nn.Module):
    """Both transfers of one map to another."""

    def forward(self, content: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
        return adain(content, style_of(reference)), efdm(content, reference)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_exported_transfer_gives_the_same_for_batches_of_other_sizes(layout: torch.memory_format) -> None:
    content, reference = (noise(6, 3, 4, 5, seed=seed).float().contiguous(memory_format=layout) for seed in (0, 1))
    batch = {0: torch.export.Dim("batch", min=1, max=64)}
    exported = torch.export.export(Transfer(), (content, reference), dynamic_shapes=(batch, batch)).module()
    for count in (1, 2, 6):
        some = content[:count], reference[:count]
        for given_back, expected in zip(exported(*some), Transfer()(*some), strict=True):
            torch.testing.assert_close(given_back, expected)
            assert given_back.stride() == expected.stride()
