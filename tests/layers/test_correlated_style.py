"""Correlated style uncertainty: styles sampled with their covariance over channels."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from styleshift.layers.correlated_style import CorrelatedStyle
from styleshift.style.draws import Draws
from styleshift.style.statistics import style_of


def maps(*shape: int, seed: int = 0) -> Tensor:
    """Features whose styles vary over the batch together: all channels follow the first one, more or less."""
    generator = torch.Generator().manual_seed(seed)
    looks = torch.rand(2, *shape[:2], 1, 1, generator=generator, dtype=torch.float64)
    looks = 0.7 * looks[:, :, :1] + 0.3 * looks
    return torch.randn(shape, generator=generator, dtype=torch.float64) * (0.5 + 3 * looks[0]) + 4 * looks[1]


def layer_with(seed: int = 0, **settings: Any) -> CorrelatedStyle:
    return CorrelatedStyle(p=1.0, generator=torch.Generator().manual_seed(seed), **settings).train()


def plainly_sampled(features: Tensor, seed: int, correction: int = 0, alpha: float = 0.3) -> Tensor:
    """CSU with the draws of this seed: its coin, the strengths, the noise for means and for deviations."""
    draws = Draws(torch.Generator().manual_seed(seed))
    draws.coin(1.0)
    samples, channels = features.shape[:2]
    strength = draws.beta(alpha, samples).double().numpy()[:, None]
    for_mean, for_std = (draws.normal(samples, channels).double().numpy() for _ in range(2))
    values = features.numpy()
    mean = values.mean(axis=(2, 3))
    std = np.sqrt(values.var(axis=(2, 3), ddof=correction) + 1e-6)
    new_mean = mean + strength * (for_mean @ root(np.cov(mean.T, bias=True)))
    new_std = std + strength * (for_std @ root(np.cov(std.T, bias=True)))
    normalised = (values - mean[:, :, None, None]) / std[:, :, None, None]
    return torch.from_numpy(normalised * new_std[:, :, None, None] + new_mean[:, :, None, None])


def root(covariance: np.ndarray) -> np.ndarray:
    """The symmetric square root of a covariance matrix, by Newton's iteration."""
    # a little on the diagonal, so that a batch which does not span all channels has an inverse
    y, z = covariance / np.trace(covariance) + 1e-14 * np.eye(len(covariance)), np.eye(len(covariance))
    for _ in range(60):
        y, z = (y + np.linalg.inv(z)) / 2, (z + np.linalg.inv(y)) / 2
    return y * math.sqrt(np.trace(covariance))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [6, 7])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_it_is_the_plain_formula_with_its_draws(seed: int, count: int, correction: int, scale: float) -> None:
    features = maps(count, 3, 4, 5, seed=seed) * scale
    sampled = layer_with(seed, correction=correction)(features)
    torch.testing.assert_close(sampled, plainly_sampled(features, seed, correction), rtol=1e-6, atol=1e-6 * scale)


def test_alpha_is_that_of_the_strength() -> None:
    features = maps(6, 3, 4, 5)
    expected = plainly_sampled(features, 2, alpha=3.0)
    torch.testing.assert_close(layer_with(2, alpha=3.0)(features), expected, rtol=1e-6, atol=1e-6)


def added(features: Tensor, **settings: Any) -> tuple[Tensor, Tensor]:
    """What is added to means and to deviations, each `[B, C]`."""
    before, after = style_of(features), style_of(layer_with(**settings)(features))
    return after.mean - before.mean, after.std - before.std


def test_over_many_samples_what_is_added_has_the_covariance_of_the_styles() -> None:
    features = maps(8000, 3, 2, 2)
    # Beta(1e6, 1e6) is a half, so a quarter of the covariance
    for_mean, _ = added(features, alpha=1e6)
    expected = torch.cov(features.mean(dim=(2, 3)).T) / 4
    assert (expected[0, 1:] > expected[0, 0] / 3).all()
    torch.testing.assert_close(torch.cov(for_mean.T), expected, rtol=0, atol=0.05 * float(expected.max()))


def test_what_is_added_to_deviations_has_their_own_covariance() -> None:
    features = maps(8000, 3, 3, 3)
    # far from 0, so that no sampled deviation turns negative
    features = features * 0.1 + torch.sign(features - features.mean(dim=(2, 3), keepdim=True)) * 10
    _, for_std = added(features, alpha=1e6)
    expected = torch.cov(style_of(features).std.T) / 4
    torch.testing.assert_close(torch.cov(for_std.T), expected, rtol=0, atol=0.05 * float(expected.max()))


def test_each_sample_takes_as_much_noise_as_its_strength() -> None:
    features = maps(8000, 3, 2, 2)
    # Beta(0.3, 0.3) has the second moment 1/4 + 1/6.4 of its own
    for_mean, _ = added(features)
    expected = torch.cov(features.mean(dim=(2, 3)).T) * (1 / 4 + 1 / 6.4)
    torch.testing.assert_close(torch.cov(for_mean.T), expected, rtol=0, atol=0.05 * float(expected.max()))


def test_channels_whose_styles_vary_as_one_move_as_one() -> None:
    features = maps(8, 1, 4, 5).expand(8, 3, 4, 5)
    for_mean, _ = added(features)
    torch.testing.assert_close(for_mean, for_mean[:, :1].expand(8, 3), rtol=0, atol=1e-5)
    assert for_mean.abs().max() > 0.1


def test_a_channel_whose_style_does_not_vary_keeps_it() -> None:
    features = maps(8, 3, 4, 5)
    features[:, 1] = features[0, 1]
    for_mean, for_std = added(features)
    assert for_mean[:, 1].abs().max() < 1e-5
    assert for_std[:, 1].abs().max() < 1e-5
    assert for_mean[:, 0].abs().max() > 0.1


@pytest.mark.parametrize("correction", [0, 1])
def test_a_batch_of_one_passes_through(correction: int) -> None:
    features = maps(1, 3, 4, 5)
    assert layer_with(correction=correction)(features) is features


def test_released_codes_deviation_shows_where_it_is_as_small_as_its_epsilon() -> None:
    features = maps(6, 3, 2, 2)
    for scale, same in ((1.0, True), (1e-3, False)):
        biased, unbiased = (layer_with(correction=correction)(features * scale) for correction in (0, 1))
        assert torch.allclose(biased, unbiased, rtol=1e-3, atol=0) == same


def test_on_one_channel_where_there_is_one_direction_its_gradient_is_exact() -> None:
    features = maps(4, 1, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer_with(3)(x), (features,))


@pytest.mark.parametrize("samples", [maps(2, 8, 4, 5), maps(1, 8, 4, 5).repeat(4, 1, 1, 1)], ids=["two", "equal"])
def test_its_gradient_is_finite_where_a_batch_does_not_span_the_channels(samples: Tensor) -> None:
    features = samples.clone().requires_grad_()
    (layer_with()(features) ** 3).sum().backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()
    assert (features.grad != 0).any()


def test_infinity_comes_out_as_nan_and_not_as_an_error() -> None:
    features = maps(4, 3, 4, 5)
    features[1, 2, 0, 0] = math.inf
    assert layer_with()(features)[:, 2].isnan().all()


def test_left_alone_it_is_that_of_released_code() -> None:
    layer = CorrelatedStyle()
    assert (layer.p, layer.alpha, layer.correction) == (0.5, 0.3, 0)


@pytest.mark.parametrize("alpha", [0.0, -0.1, math.nan])
def test_an_alpha_that_beta_cannot_have_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"above 0; got {alpha}"):
        CorrelatedStyle(alpha=alpha)


def test_another_correction_than_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"correction is 0 .* or 1 .*; got 2"):
        CorrelatedStyle(correction=2)


def test_it_says_what_it_is() -> None:
    assert repr(CorrelatedStyle(0.2, 0.4)) == "CorrelatedStyle(p=0.2, alpha=0.4)"
