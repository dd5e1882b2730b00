"""Style statistics: Eqs. 1, 2 and 4, and features carried from one style into another."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.statistics import EPS, Style, expect_maps, restyle, style_of

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LAYOUTS = [torch.contiguous_format, torch.channels_last]
TIGHT = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-5, torch.bfloat16: 1e-5}


def maps(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain_style(features: Tensor, correction: int = 0) -> Style:
    """Eqs. 1 and 2, letter by letter, with 1e-6 below the root."""
    mean, std = [], []
    for sample in features.double().flatten(2).tolist():
        mean.append([sum(channel) / len(channel) for channel in sample])
        std.append(
            [
                math.sqrt(sum((x - m) ** 2 for x in channel) / max(len(channel) - correction, 1) + 1e-6)
                for channel, m in zip(sample, mean[-1], strict=True)
            ]
        )
    return Style(torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64))


def test_the_style_of_1_3_5_7_is_4_and_the_root_of_5() -> None:
    style = style_of(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]], dtype=torch.float64))
    assert style.mean.item() == 4
    assert style.std.item() == pytest.approx(math.sqrt(5 + 1e-6), rel=1e-15)


def test_the_unbiased_deviation_divides_by_one_less() -> None:
    style = style_of(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]], dtype=torch.float64), correction=1)
    assert style.std.item() == pytest.approx(math.sqrt(20 / 3 + 1e-6), rel=1e-15)


@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    correction=st.sampled_from([0, 1]),
    scale=st.sampled_from([1e-4, 1.0, 1e3]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_the_style_is_that_of_the_plain_formulas(
    shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format, correction: int, scale: float, seed: int
) -> None:
    features = (maps(*shape, seed=seed) * scale).to(dtype).contiguous(memory_format=layout)
    style, expected = style_of(features, correction), plain_style(features, correction)
    torch.testing.assert_close(style.mean.double(), expected.mean, rtol=TIGHT[dtype], atol=TIGHT[dtype] * scale)
    torch.testing.assert_close(style.std.double(), expected.std, rtol=TIGHT[dtype], atol=0)


@pytest.mark.parametrize(
    ("dtype", "measured"),
    [(torch.float16, torch.float32), (torch.bfloat16, torch.float32), (torch.float64, torch.float64)],
)
def test_half_precision_is_measured_in_float32(dtype: torch.dtype, measured: torch.dtype) -> None:
    style = style_of(torch.ones(1, 2, 3, 3, dtype=dtype))
    assert style.mean.dtype == style.std.dtype == measured


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_overflow_at_a_thousand(dtype: torch.dtype) -> None:
    features = (maps(2, 3, 56, 56) * 1e3).to(dtype)
    style, expected = style_of(features), plain_style(features)
    torch.testing.assert_close(style.phi.double(), expected.phi, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("correction", [0, 1])
def test_a_1x1_map_has_its_value_as_mean_and_the_least_deviation(correction: int) -> None:
    style = style_of(torch.tensor([[[[7.0]], [[-2.0]]]]), correction)
    assert style.mean.tolist() == [[7, -2]]
    assert torch.equal(style.std, torch.full((1, 2), EPS).sqrt())


def test_no_samples_have_no_style() -> None:
    assert style_of(torch.zeros(0, 3, 4, 4)).phi.shape == (0, 6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_spoil_their_own_channel_alone(value: float) -> None:
    features = maps(2, 3, 4, 4)
    features[1, 2, 0, 0] = value
    expected = torch.zeros(2, 6, dtype=torch.bool)
    expected[1, [2, 5]] = True
    assert torch.equal(style_of(features).phi.isnan(), expected)


@given(seed=st.integers(0, 99), factor=st.floats(0.5, 1e4), offset=st.floats(-1e3, 1e3))
@settings(deadline=None, max_examples=30)
def test_scaled_and_moved_features_have_a_scaled_and_moved_style(seed: int, factor: float, offset: float) -> None:
    features = maps(2, 3, 4, 5, seed=seed)
    before, after = style_of(features), style_of(factor * features + offset)
    torch.testing.assert_close(after.mean, factor * before.mean + offset, rtol=1e-9, atol=1e-9)
    variance = before.std.square() - EPS
    torch.testing.assert_close(after.std, (factor**2 * variance + EPS).sqrt(), rtol=1e-9, atol=1e-9)


def test_where_things_are_does_not_change_the_style() -> None:
    features = maps(2, 3, 4, 5)
    torch.testing.assert_close(style_of(features.flip(2, 3)).phi, style_of(features).phi, rtol=1e-12, atol=1e-12)


def test_phi_is_the_mean_then_the_deviation() -> None:
    style = Style(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    assert style.phi.tolist() == [[1, 2, 3, 4]]


def test_of_phi_undoes_phi() -> None:
    style = style_of(maps(2, 3, 4, 4))
    again = Style.of_phi(style.phi)
    assert torch.equal(again.mean, style.mean)
    assert torch.equal(again.std, style.std)


@pytest.mark.parametrize("which", [torch.tensor([2, 0]), torch.tensor([True, False, True])])
def test_rows_are_taken_by_index_or_mask(which: Tensor) -> None:
    style = Style(torch.arange(6.0).view(3, 2), -torch.arange(6.0).view(3, 2))
    assert torch.equal(style.rows(which).phi, style.phi[which])


def test_a_detached_style_has_the_numbers_and_no_graph() -> None:
    style = style_of(maps(2, 3, 4, 4).requires_grad_())
    assert torch.equal(style.detached().phi, style.phi)
    assert not style.detached().phi.requires_grad


def test_the_style_has_exact_first_and_second_derivatives() -> None:
    features = maps(2, 2, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(style_of, features)
    assert torch.autograd.gradgradcheck(style_of, features)


def test_a_dead_channel_has_a_finite_gradient() -> None:
    features = torch.zeros(1, 2, 3, 3, requires_grad=True)
    style_of(features).phi.sum().backward()
    assert features.grad is not None
    torch.testing.assert_close(features.grad, torch.full((1, 2, 3, 3), 1 / 9))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_restyled_features_have_the_new_style(dtype: torch.dtype, layout: torch.memory_format) -> None:
    features = maps(2, 3, 8, 8).to(dtype).contiguous(memory_format=layout)
    new = Style(torch.tensor([[5.0, -1.0, 0.0]] * 2), torch.tensor([[2.0, 0.5, 1.0]] * 2))
    restyled = restyle(features, style_of(features), new)
    rough = 4 * torch.finfo(dtype).eps * 5 + 1e-5
    torch.testing.assert_close(style_of(restyled).phi.float(), new.phi, rtol=rough, atol=rough)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_restyled_features_keep_dtype_and_memory_layout(dtype: torch.dtype, layout: torch.memory_format) -> None:
    features = maps(2, 3, 4, 5).to(dtype).contiguous(memory_format=layout)
    restyled = restyle(features, style_of(features), style_of(features))
    assert restyled.dtype == dtype
    assert restyled.is_contiguous(memory_format=layout)


def test_a_constant_channel_becomes_exactly_the_new_mean() -> None:
    features = torch.full((1, 1, 13, 17), 0.1)
    new = Style(torch.tensor([[2.3]]), torch.tensor([[7.0]]))
    assert (restyle(features, style_of(features), new) == new.mean).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_restyling_half_precision_of_a_thousand_stays_finite(dtype: torch.dtype) -> None:
    features = (maps(2, 3, 56, 56) * 1e3).to(dtype)
    own = style_of(features)
    torch.testing.assert_close(restyle(features, own, own), features, rtol=0.02, atol=8)


def test_restyling_has_exact_derivatives_to_the_features_and_both_styles() -> None:
    def restyled(features: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return restyle(features, style_of(features), Style(mean, std))

    inputs = [
        maps(2, 2, 3, 2).requires_grad_(),
        maps(2, 2, seed=1).requires_grad_(),
        maps(2, 2, seed=2).requires_grad_(),
    ]
    assert torch.autograd.gradcheck(restyled, inputs)
    assert torch.autograd.gradgradcheck(restyled, inputs)


@pytest.mark.parametrize(
    "features",
    [
        torch.zeros(3, 4, 5),
        torch.zeros(2, 3, 4, 5, dtype=torch.int64),
        torch.zeros(2, 3, 0, 5),
        torch.zeros(2, 0, 4, 4),
    ],
)
def test_what_is_no_feature_map_is_refused_with_its_shape(features: Tensor) -> None:
    with pytest.raises(ValueError, match=r"\[B, C, H, W\]") as refused:
        expect_maps(features)
    assert str(list(features.shape)) in str(refused.value)
