"""Mean, variance and the affine map: right in every memory layout, at every size, with every gradient."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.affine import affine, moments

LAYOUTS = [torch.contiguous_format, torch.channels_last]


def maps(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def doubles(numbers: list[list[float]]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def plain_moments(features: Tensor) -> tuple[list[list[float]], list[list[float]]]:
    """Eqs. 1 and 2, letter by letter."""
    means, variances = [], []
    for sample in features.double().flatten(2).tolist():
        mean = [sum(channel) / len(channel) for channel in sample]
        variance = [sum((x - m) ** 2 for x in ch) / len(ch) for ch, m in zip(sample, mean, strict=True)]
        means.append(mean)
        variances.append(variance)
    return means, variances


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6)),
    scale=st.sampled_from([1e-6, 1.0, 1e3, 1e15]),
    offset=st.sampled_from([0.0, 1.0, -1e2]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    layout=st.sampled_from(LAYOUTS),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_moments_are_those_of_the_plain_formulas(
    shape: tuple[int, ...], scale: float, offset: float, dtype: torch.dtype, layout: torch.memory_format, seed: int
) -> None:
    features = (
        ((maps(*shape, seed=seed, dtype=torch.float64) + offset) * scale).to(dtype).contiguous(memory_format=layout)
    )
    means, variances = plain_moments(features)
    mean, variance = moments(features)
    tight = 1e-12 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(mean.double(), doubles(means), rtol=tight, atol=tight * scale)
    torch.testing.assert_close(variance.double(), doubles(variances), rtol=tight, atol=tight * scale**2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("places", [(1, 1), (3, 3), (13, 17), (64, 300)])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e3, 1.2345e10, 3e-30])
def test_a_constant_channel_has_exactly_its_value_as_mean_and_no_variance(
    value: float, places: tuple[int, int], layout: torch.memory_format
) -> None:
    mean, variance = moments(torch.full((2, 3, *places), value).contiguous(memory_format=layout))
    assert (mean == torch.tensor(value)).all()
    assert (variance == 0).all()


def test_a_large_mean_does_not_swallow_the_variance() -> None:
    features = maps(2, 3, 32, 32) + 1e4
    _, variance = moments(features)
    expected = features.double().var(dim=(2, 3), correction=0)
    torch.testing.assert_close(variance.double(), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_maps_have_the_moments_of_their_samples(layout: torch.memory_format) -> None:
    large = maps(5, 16, 256, 256).contiguous(memory_format=layout)
    one_by_one = [moments(sample[None]) for sample in large]
    for of_all, of_each in zip(moments(large), zip(*one_by_one, strict=True), strict=True):
        torch.testing.assert_close(of_all, torch.cat(of_each), rtol=1e-6, atol=1e-6)


def test_a_sample_larger_than_a_slab_has_the_moments_of_its_channels() -> None:
    large = maps(2, 3, 1024, 1024)
    mean, variance = moments(large)
    expected = large.double().numpy()
    np.testing.assert_allclose(mean, expected.mean(axis=(2, 3)), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(variance, expected.var(axis=(2, 3)), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_maps_have_the_gradients_of_their_samples(layout: torch.memory_format) -> None:
    large, weight = maps(5, 16, 256, 256).contiguous(memory_format=layout), maps(5, 16, 256, 256, seed=1)
    statistics = [maps(5, 16, seed=seed) for seed in (2, 3, 4)]

    def gradients(features: Tensor, by: Tensor, given: list[Tensor]) -> tuple[Tensor, ...]:
        leaves = [tensor.clone().requires_grad_() for tensor in (features, *given)]
        mean, variance = moments(leaves[0])
        loss = (affine(*leaves) * by).sum() + mean.sum() + variance.sum()
        return torch.autograd.grad(loss, leaves)

    one_by_one = [
        gradients(large[i : i + 1], weight[i : i + 1], [one[i : i + 1] for one in statistics]) for i in range(5)
    ]
    for of_all, of_each in zip(gradients(large, weight, statistics), zip(*one_by_one, strict=True), strict=True):
        torch.testing.assert_close(of_all, torch.cat(of_each), rtol=1e-4, atol=1e-3)


def test_affine_is_the_formula() -> None:
    features, centre, scale, offset = maps(2, 3, 4, 5), maps(2, 3, seed=1), maps(2, 3, seed=2), maps(2, 3, seed=3)
    transformed = affine(features, centre, scale, offset)
    for b, c, h, w in np.ndindex(2, 3, 4, 5):
        expected = (features[b, c, h, w].item() - centre[b, c].item()) * scale[b, c].item() + offset[b, c].item()
        assert transformed[b, c, h, w].item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_neither_changes_what_it_is_given() -> None:
    features, statistic = maps(2, 3, 4, 5), maps(2, 3)
    before = features.clone(), statistic.clone()
    moments(features)
    affine(features, statistic, statistic, statistic)
    assert torch.equal(features, before[0])
    assert torch.equal(statistic, before[1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_affine_keeps_the_memory_layout(layout: torch.memory_format) -> None:
    features, statistic = maps(2, 3, 4, 5).contiguous(memory_format=layout), maps(2, 3)
    assert affine(features, statistic, statistic, statistic).is_contiguous(memory_format=layout)


def test_no_samples_have_no_moments() -> None:
    mean, variance = moments(torch.zeros(0, 3, 4, 4))
    assert mean.shape == variance.shape == (0, 3)


def test_moments_have_exact_first_and_second_derivatives() -> None:
    features = maps(2, 2, 3, 2, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(moments, features)
    assert torch.autograd.gradgradcheck(moments, features)


@pytest.mark.parametrize("learning", [(True, True, True, True), (False, True, True, True), (True, False, False, True)])
def test_affine_has_exact_first_and_second_derivatives(learning: tuple[bool, ...]) -> None:
    shapes = [(2, 2, 3, 2), (2, 2), (2, 2), (2, 2)]
    inputs = [
        maps(*shape, seed=seed, dtype=torch.float64).requires_grad_(learns)
        for seed, (shape, learns) in enumerate(zip(shapes, learning, strict=True))
    ]
    assert torch.autograd.gradcheck(affine, inputs)
    assert torch.autograd.gradgradcheck(affine, inputs)


def test_function_transforms_see_through_both(plain_python: Callable[[str], str]) -> None:
    plain_python("""
import torch
from styleshift import Style, adain, style_of
from torch.func import grad, jacrev, vmap

draws = torch.Generator().manual_seed(0)
features, five = torch.randn(2, 3, 4, 5, generator=draws), torch.randn(5, 2, 3, 4, 5, generator=draws)
styles = Style(torch.randn(5, 2, 3, generator=draws), torch.rand(5, 2, 3, generator=draws) + 0.5)

def energy(maps):
    return (adain(maps, Style(styles.mean[0], styles.std[0])) ** 3).sum() + (style_of(maps).std ** 2).sum()

leaf = features.clone().requires_grad_()
(plain,) = torch.autograd.grad(energy(leaf), leaf)
torch.testing.assert_close(grad(energy)(features), plain)
torch.testing.assert_close(vmap(grad(energy))(five)[3], grad(energy)(five[3]), rtol=1e-4, atol=1e-4)
stds = vmap(style_of, in_dims=1)(five.transpose(0, 1)).std
torch.testing.assert_close(stds, torch.stack([style_of(maps).std for maps in five]))
each = torch.stack([adain(features, Style(*style)) for style in zip(*styles)])
torch.testing.assert_close(vmap(adain, in_dims=(None, 0))(features, styles), each)
given = jacrev(lambda maps: style_of(maps).std)(features)
torch.testing.assert_close(given, torch.autograd.functional.jacobian(lambda maps: style_of(maps).std, features))
""")


def test_a_compiled_graph_gives_the_same_numbers_and_gradients(plain_python: Callable[[str], str]) -> None:
    plain_python("""
import torch
from styleshift.style.affine import affine, moments

def restyled(features):
    mean, variance = moments(features)
    return affine(features, mean, (variance + 1e-6).rsqrt(), mean * 2)

weight = torch.randn(3, 4, 5, 6)
for features in (torch.randn(3, 4, 5, 6), torch.full((3, 4, 5, 6), 0.1)):
    eager, traced = features.clone().requires_grad_(), features.clone().requires_grad_()
    expected, given = restyled(eager), torch.compile(restyled, backend="aot_eager", fullgraph=True)(traced)
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5)
    (expected * weight).sum().backward()
    (given * weight).sum().backward()
    torch.testing.assert_close(traced.grad, eager.grad, rtol=1e-4, atol=1e-4 * eager.grad.abs().max().item())
""")


def test_without_gradients_styles_may_be_mapped_over(plain_python: Callable[[str], str]) -> None:
    plain_python("""
import torch
from styleshift import Style, adain

features, means, stds = torch.randn(2, 3, 4, 5), torch.randn(5, 2, 3), torch.rand(5, 2, 3) + 0.5
each = torch.stack([adain(features, Style(*style)) for style in zip(means, stds)])
with torch.no_grad():
    torch.testing.assert_close(torch.vmap(lambda mean, std: adain(features, Style(mean, std)))(means, stds), each)
""")
