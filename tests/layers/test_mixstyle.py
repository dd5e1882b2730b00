"""MixStyle: means and deviations mixed with a partner's."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from styleshift.layers._partners import Partner
from styleshift.layers.mixstyle import MixStyle
from styleshift.style.draws import Draws


def maps(*shape: int, seed: int = 0) -> Tensor:
    """Features whose samples differ in mean and deviation."""
    generator = torch.Generator().manual_seed(seed)
    looks = torch.rand(2, *shape[:2], 1, 1, generator=generator, dtype=torch.float64)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * (0.5 + 3 * looks[0]) + 4 * looks[1]


def layer_with(seed: int = 0, **settings: Any) -> MixStyle:
    return MixStyle(p=1.0, generator=torch.Generator().manual_seed(seed), **settings).train()


def drawn(seed: int, count: int, partner: Partner = "random", alpha: float = 0.1) -> tuple[list[float], list[int]]:
    """The shares and partners that a layer with this seed draws: its coin first, then lambda, then the partners."""
    draws = Draws(torch.Generator().manual_seed(seed))
    draws.coin(1.0)
    shares = draws.beta(alpha, count).tolist()
    if partner == "random":
        return shares, draws.permutation(count).tolist()
    half, odd = divmod(count, 2)
    lenders = [half + odd + place for place in draws.permutation(half).tolist()]
    return shares, lenders + [half] * odd + draws.permutation(half).tolist()


def plainly_mixed(features: Tensor, shares: Sequence[float], partners: Sequence[int], correction: int = 0) -> Tensor:
    """MixStyle letter by letter."""
    mixed = torch.empty_like(features)
    for sample, (share, partner) in enumerate(zip(shares, partners, strict=True)):
        for channel in range(features.shape[1]):
            values, lent = features[sample, channel], features[partner, channel]
            std, lent_std = ((part.var(correction=correction) + 1e-6).sqrt() for part in (values, lent))
            mixed_mean = share * values.mean() + (1 - share) * lent.mean()
            mixed_std = share * std + (1 - share) * lent_std
            mixed[sample, channel] = (values - values.mean()) / std * mixed_std + mixed_mean
    return mixed


def test_by_hand_half_of_two_styles_lies_between_them() -> None:
    features = torch.tensor([0.0, 2.0, 16.0, 10.0], dtype=torch.float64).view(2, 1, 1, 2)
    # Beta(1e6, 1e6) is a half to three digits; styles (1, 1) and (13, 3) meet at (7, 2)
    mixed = layer_with(alpha=1e6, partner="crossdomain")(features)
    torch.testing.assert_close(mixed.flatten().tolist(), [5.0, 9.0, 9.0, 5.0], rtol=0, atol=0.02)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [6, 7])
@pytest.mark.parametrize("partner", ["random", "crossdomain"])
@pytest.mark.parametrize(("correction", "scale"), [(0, 1.0), (0, 1e-3), (1, 1e-3)])
def test_it_is_the_plain_formula_with_its_draws(
    seed: int, count: int, partner: Partner, correction: int, scale: float
) -> None:
    features = maps(count, 3, 4, 5, seed=seed) * scale
    mixed = layer_with(seed, partner=partner, correction=correction)(features)
    expected = plainly_mixed(features, *drawn(seed, count, partner), correction)
    torch.testing.assert_close(mixed, expected, rtol=1e-9, atol=1e-12)


def test_alpha_is_that_of_lambda() -> None:
    features = maps(6, 3, 4, 5)
    torch.testing.assert_close(layer_with(2, alpha=3.0)(features), plainly_mixed(features, *drawn(2, 6, alpha=3.0)))


def test_released_codes_deviation_shows_where_it_is_as_small_as_its_epsilon() -> None:
    features = maps(6, 3, 2, 2)
    for scale, same in ((1.0, True), (1e-3, False)):
        biased, unbiased = (layer_with(alpha=1.0, correction=correction)(features * scale) for correction in (0, 1))
        assert torch.allclose(biased, unbiased, rtol=1e-3, atol=0) == same


def test_the_middle_of_an_odd_batch_keeps_its_style_across_domains() -> None:
    features = maps(7, 3, 4, 5)
    mixed = layer_with(partner="crossdomain", alpha=1.0)(features)
    moved = (mixed - features).abs().flatten(1).amax(dim=1) > 1e-6
    assert moved.tolist() == [True] * 3 + [False] + [True] * 3


def test_a_batch_of_one_keeps_its_style() -> None:
    features = maps(1, 3, 4, 5)
    torch.testing.assert_close(layer_with()(features), features)


def test_its_gradient_is_mixed_over_own_deviation_since_statistics_are_constant() -> None:
    features, weights = maps(6, 3, 4, 5).requires_grad_(), maps(6, 3, 4, 5, seed=1)
    (layer_with(3)(features) * weights).sum().backward()
    shares, partners = drawn(3, 6)
    std = (features.detach().var(dim=(2, 3), correction=0) + 1e-6).sqrt()
    share = torch.tensor(shares, dtype=torch.float64)[:, None]
    ratio = (share * std + (1 - share) * std[partners]) / std
    assert features.grad is not None
    torch.testing.assert_close(features.grad, weights * ratio[:, :, None, None])


def test_left_alone_it_is_the_papers() -> None:
    layer = MixStyle()
    assert (layer.p, layer.alpha, layer.partner, layer.correction) == (0.5, 0.1, "random", 0)


@pytest.mark.parametrize("alpha", [0.0, -0.1, math.nan])
def test_an_alpha_that_beta_cannot_have_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"above 0; got {alpha}"):
        MixStyle(alpha=alpha)


def test_another_correction_than_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"correction is 0 .* or 1 .*; got 2"):
        MixStyle(correction=2)


def test_it_says_what_it_is() -> None:
    assert repr(MixStyle(0.2, 0.3, partner="crossdomain")) == "MixStyle(p=0.2, alpha=0.3, partner='crossdomain')"
