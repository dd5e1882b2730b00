"""New styles that are sampled: DSU and CSU against their formulas in plain Python, their gradients and limits."""

import math
from typing import TypeAlias

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.mixing import correlated, correlated_style, dsu, uncertain_style
from styleshift.style.statistics import Style

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]

Rows: TypeAlias = list[list[float]]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal(rows: int, channels: int, seed: int = 0) -> Style:
    return Style(noise(rows, channels, seed=seed + 1000), noise(rows, channels, seed=seed + 2000))


def shares(samples: int, seed: int = 0) -> Tensor:
    return torch.rand(samples, generator=torch.Generator().manual_seed(seed + 3000))


def plain_statistics(features: Tensor, correction: int = 0) -> tuple[Rows, Rows]:
    """Eqs. 1 and 2, or released code's unbiased variance, with 1e-6 below the root."""
    means, stds = [], []
    for sample in features.flatten(2).tolist():
        means.append([sum(channel) / len(channel) for channel in sample])
        squares = [sum((x - m) ** 2 for x in channel) for channel, m in zip(sample, means[-1], strict=True)]
        places = max(len(sample[0]) - correction, 1)
        stds.append([math.sqrt(total / places + 1e-6) for total in squares])
    return means, stds


def plain_restyle(features: Tensor, own: tuple[Rows, Rows], new: tuple[Rows, Rows]) -> Tensor:
    """sigma_new (x - mu) / sigma + mu_new."""
    restyled = torch.empty(features.shape, dtype=torch.float64).flatten(2)
    for b, sample in enumerate(features.flatten(2).tolist()):
        for c, channel in enumerate(sample):
            for place, x in enumerate(channel):
                restyled[b, c, place] = new[1][b][c] * (x - own[0][b][c]) / own[1][b][c] + new[0][b][c]
    return restyled.view(features.shape)


def plain_sampled(statistic: Rows, drawn: Tensor) -> Rows:
    """DSU: the statistic plus a normal number times its unbiased deviation over the batch, 1e-6 below the root."""
    spread = []
    for column in zip(*statistic, strict=True):
        centre = sum(column) / len(column)
        spread.append(math.sqrt(sum((x - centre) ** 2 for x in column) / (len(column) - 1) + 1e-6))
    return [
        [x + n * s for x, n, s in zip(row, numbers, spread, strict=True)]
        for row, numbers in zip(statistic, drawn.tolist(), strict=True)
    ]


def plain_root(statistic: Rows) -> Rows:
    """The symmetric root of the biased covariance of two channels: (M + sqrt(det M)) / sqrt(tr M + 2 sqrt(det M))."""
    centres = [sum(column) / len(column) for column in zip(*statistic, strict=True)]
    m = [
        [sum((row[i] - centres[i]) * (row[j] - centres[j]) for row in statistic) / len(statistic) for j in (0, 1)]
        for i in (0, 1)
    ]
    root_of_det = math.sqrt(m[0][0] * m[1][1] - m[0][1] * m[1][0])
    over = math.sqrt(m[0][0] + m[1][1] + 2 * root_of_det)
    return [[(m[i][j] + (root_of_det if i == j else 0)) / over for j in (0, 1)] for i in (0, 1)]


def rough(dtype: torch.dtype) -> float:
    return 1e-9 if dtype == torch.float64 else 1e-4 + torch.finfo(dtype).eps


# DSU


@given(
    shape=st.tuples(st.integers(2, 5), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    dtype=st.sampled_from(DTYPES),
    correction=st.sampled_from([0, 1]),
    scale=st.sampled_from([1e-4, 1.0, 1e3]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_dsu_is_the_plain_formula(
    shape: tuple[int, ...], dtype: torch.dtype, correction: int, scale: float, seed: int
) -> None:
    features, drawn = (noise(*shape, seed=seed) * scale).to(dtype), normal(shape[0], shape[1], seed)
    own = plain_statistics(features, correction)
    mean, std = (plain_sampled(part, numbers) for part, numbers in zip(own, drawn, strict=True))
    expected = plain_restyle(features, own, (mean, std))
    sampled = dsu(features, drawn, correction).double()
    torch.testing.assert_close(sampled, expected, rtol=rough(dtype), atol=rough(dtype) * max(scale, 1e-2))


def test_styles_1_and_3_are_sampled_by_the_root_of_2() -> None:
    own = Style(torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [5.0]]))
    sampled = uncertain_style(own, Style(torch.tensor([[1.0], [-2.0]]), torch.tensor([[3.0], [0.0]])))
    root = math.sqrt(2 + 1e-6)
    torch.testing.assert_close(sampled.mean, torch.tensor([[1 + root], [3 - 2 * root]]))
    torch.testing.assert_close(sampled.std, torch.tensor([[5 + 3e-3], [5]]))


def test_a_sampled_deviation_may_turn_the_map_over() -> None:
    features = noise(2, 1, 4, 4) * torch.tensor([1.0, 9.0])[:, None, None, None]
    changed = dsu(features, Style(torch.zeros(2, 1), torch.full((2, 1), -5.0)))
    correlation = torch.corrcoef(torch.stack([features[0].flatten(), changed[0].flatten()]))[0, 1]
    assert correlation.item() == pytest.approx(-1)


@pytest.mark.parametrize("correction", [0, 1])
def test_dsu_has_exact_derivatives_through_every_statistic(correction: int) -> None:
    drawn = normal(3, 2)
    leaf = noise(3, 2, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda maps: dsu(maps, drawn, correction), leaf)


# CSU


@given(samples=st.integers(3, 8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_correlated_noise_has_the_covariance_of_the_batch(samples: int, seed: int) -> None:
    statistic, drawn = noise(samples, 2, seed=seed), noise(samples, 2, seed=seed + 1)
    expected = drawn @ torch.tensor(plain_root(statistic.tolist()), dtype=torch.float64)
    torch.testing.assert_close(correlated(drawn, statistic), expected, rtol=1e-6, atol=1e-6)


def test_noise_along_a_direction_in_which_styles_do_not_vary_is_taken_away() -> None:
    statistic = noise(3, 1) * torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    across = torch.tensor([[4.0, -3.0]] * 3, dtype=torch.float64)
    torch.testing.assert_close(correlated(across, statistic), torch.zeros_like(across), rtol=0, atol=1e-5)


def test_the_gradient_of_one_correlated_channel_is_exact() -> None:
    statistic, drawn = noise(4, 1).requires_grad_(), noise(4, 1, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(correlated, (drawn, statistic))


def test_only_the_directions_of_the_covariance_are_constant() -> None:
    statistic, drawn = noise(5, 3), noise(5, 3, seed=1)
    directions = torch.linalg.eigh(torch.cov(statistic.T, correction=0)).eigenvectors

    def along_these(statistic: Tensor) -> Tensor:
        spread = (statistic @ directions).std(dim=0, correction=0)
        return drawn @ directions @ torch.diag(spread) @ directions.T

    leaves = [statistic.clone().requires_grad_() for _ in range(2)]
    (correlated(drawn, leaves[0]) * drawn).sum().backward()
    (along_these(leaves[1]) * drawn).sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=1e-7, atol=1e-9)


def test_an_overflowing_covariance_gives_no_error_but_nothing_finite() -> None:
    statistic = noise(3, 3).float() * 1e30
    assert not correlated(torch.ones(3, 3), statistic).isfinite().any()


def test_equal_styles_have_a_finite_gradient() -> None:
    statistic = torch.ones(3, 2, requires_grad=True)
    correlated(noise(3, 2).float(), statistic).sum().backward()
    assert statistic.grad.isfinite().all()


def test_autocast_does_not_coarsen_the_covariance() -> None:
    drawn, statistic = noise(6, 3).float(), noise(6, 3, seed=1).float()
    expected = correlated(drawn, statistic)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(correlated(drawn, statistic), expected)


@given(
    samples=st.integers(3, 6),
    correction=st.sampled_from([0, 1]),
    scale=st.sampled_from([1e-3, 1.0]),  # with 1e-3, what is below the root counts
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_csu_is_the_plain_formula(samples: int, correction: int, scale: float, dtype: torch.dtype, seed: int) -> None:
    features, drawn = (noise(samples, 2, 3, 4, seed=seed) * scale).to(dtype), normal(samples, 2, seed)
    own, strength, new = plain_statistics(features, correction), shares(samples, seed), []
    for statistic, numbers in zip(own, drawn, strict=True):
        moved = torch.tensor(statistic, dtype=torch.float64)
        new.append((moved + strength.double()[:, None] * (numbers @ moved.new_tensor(plain_root(statistic)))).tolist())
    expected = plain_restyle(features, own, (new[0], new[1]))
    sampled = correlated_style(features, drawn, strength, correction).double()
    least = 1e-5 if scale == 1 else 1e-3  # 1e-12 is the smallest variance
    torch.testing.assert_close(sampled, expected, rtol=least + rough(dtype), atol=(least + rough(dtype)) * scale)
