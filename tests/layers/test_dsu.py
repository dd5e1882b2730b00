"""DSU: means and deviations sampled around each sample's own."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from styleshift.layers.dsu import DSU
from styleshift.style.draws import Draws
from styleshift.style.statistics import style_of


def maps(*shape: int, seed: int = 0) -> Tensor:
    """Features whose samples differ in mean and deviation."""
    generator = torch.Generator().manual_seed(seed)
    looks = torch.rand(2, *shape[:2], 1, 1, generator=generator, dtype=torch.float64)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * (0.1 + 3 * looks[0]) + 4 * looks[1]


def layer_with(seed: int = 0, **settings: Any) -> DSU:
    return DSU(p=1.0, generator=torch.Generator().manual_seed(seed), **settings).train()


def drawn(seed: int, samples: int, channels: int) -> list[list[list[float]]]:
    """The noise for means and for deviations that a layer with this seed draws, after its coin."""
    draws = Draws(torch.Generator().manual_seed(seed))
    draws.coin(1.0)
    return [draws.normal(samples, channels).tolist() for _ in range(2)]


def plainly_sampled(features: Tensor, seed: int, correction: int = 0) -> Tensor:
    """DSU letter by letter, with the draws of this seed."""
    samples, channels = features.shape[:2]
    for_mean, for_std = drawn(seed, samples, channels)
    sampled = torch.empty_like(features)
    for channel in range(channels):
        means = [float(features[sample, channel].mean()) for sample in range(samples)]
        stds = [math.sqrt(features[sample, channel].var(correction=correction) + 1e-6) for sample in range(samples)]
        mean_spread, std_spread = spread(means), spread(stds)
        for sample in range(samples):
            normalised = (features[sample, channel] - means[sample]) / stds[sample]
            new_std = stds[sample] + for_std[sample][channel] * std_spread
            sampled[sample, channel] = normalised * new_std + means[sample] + for_mean[sample][channel] * mean_spread
    return sampled


def spread(values: list[float]) -> float:
    """The unbiased deviation over the batch."""
    middle = sum(values) / len(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1) + 1e-6)


def test_by_hand_means_1_and_3_spread_by_the_root_of_2() -> None:
    features = torch.tensor([[0.0, 2.0], [2.0, 4.0]], dtype=torch.float64).view(2, 1, 1, 2)
    for_mean, _ = drawn(0, 2, 1)
    expected = [1 + math.sqrt(2) * for_mean[0][0], 3 + math.sqrt(2) * for_mean[1][0]]
    assert layer_with()(features).mean(dim=(1, 2, 3)).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [2, 6, 7])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_it_is_the_plain_formula_with_its_draws(seed: int, count: int, correction: int, scale: float) -> None:
    features = maps(count, 3, 4, 5, seed=seed) * scale
    sampled = layer_with(seed, correction=correction)(features)
    torch.testing.assert_close(sampled, plainly_sampled(features, seed, correction), rtol=1e-9, atol=1e-12)


def test_released_codes_deviation_shows_where_it_is_as_small_as_its_epsilon() -> None:
    features = maps(6, 3, 2, 2)
    for scale, same in ((1.0, True), (1e-3, False)):
        biased, unbiased = (layer_with(correction=correction)(features * scale) for correction in (0, 1))
        assert torch.allclose(biased, unbiased, rtol=1e-3, atol=0) == same


def test_a_sampled_deviation_may_turn_negative_as_released() -> None:
    features = maps(8, 4, 4, 4) * torch.logspace(-2, 1, 8)[:, None, None, None]
    sampled = layer_with()(features)
    centred, new = (part - part.mean(dim=(2, 3), keepdim=True) for part in (features, sampled))
    turned = (centred * new).sum(dim=(2, 3)) < 0
    assert turned.any()
    assert not turned.all()


@pytest.mark.parametrize("correction", [0, 1])
def test_a_batch_of_one_passes_through(correction: int) -> None:
    features = maps(1, 3, 4, 5)
    assert layer_with(correction=correction)(features) is features


def test_samples_of_one_style_stay_within_thousandths() -> None:
    features = maps(1, 3, 4, 5).expand(6, 3, 4, 5)
    # no spread but the 1e-6 below the root; means and deviations move by 1e-3 a standard normal number
    moved = style_of(layer_with()(features)).phi - style_of(features).phi
    assert 1e-4 < moved.abs().max() < 5e-3


def test_styles_scatter_as_widely_as_they_do_over_the_batch() -> None:
    features, layer = maps(5, 2, 4, 4), layer_with()
    means = torch.stack([layer(features).mean(dim=(2, 3)) for _ in range(1000)])
    expected = features.mean(dim=(2, 3)).std(dim=0, correction=1).expand(5, 2)
    torch.testing.assert_close(means.std(dim=0), expected, rtol=0.1, atol=0)


def test_nothing_is_held_constant_in_its_gradient() -> None:
    features = maps(4, 2, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer_with(3)(x), (features,))


def test_left_alone_it_is_the_papers() -> None:
    layer = DSU()
    assert (layer.p, layer.correction) == (0.5, 0)


@pytest.mark.parametrize("correction", [-1, 2])
def test_another_correction_than_0_and_1_is_refused(correction: int) -> None:
    with pytest.raises(ValueError, match=f"correction is 0 .* or 1 .*; got {correction}"):
        DSU(correction=correction)


def test_it_says_what_it_is() -> None:
    assert repr(DSU(0.2)) == "DSU(p=0.2)"
