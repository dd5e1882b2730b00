"""EFDMix: values mixed with those of the same rank in a partner."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from styleshift.layers.efdmix import EFDMix
from styleshift.style.draws import Draws


def maps(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer_with(seed: int = 0, **settings: Any) -> EFDMix:
    return EFDMix(p=1.0, generator=torch.Generator().manual_seed(seed), **settings).train()


def drawn(seed: int, count: int, alpha: float = 0.1) -> tuple[list[float], list[int]]:
    """The shares and partners that a layer with this seed draws: its coin first, then lambda, then the partners."""
    draws = Draws(torch.Generator().manual_seed(seed))
    draws.coin(1.0)
    return draws.beta(alpha, count).tolist(), draws.permutation(count).tolist()


def ranked(values: Sequence[float]) -> list[int]:
    """Positions in ascending order of their values, equal values by position."""
    return sorted(range(len(values)), key=lambda place: values[place])


def plainly_mixed(features: Tensor, shares: Sequence[float], partners: Sequence[int]) -> Tensor:
    """EFDMix letter by letter: the value of rank r with the partner's value of rank r."""
    rows = features.flatten(2).tolist()
    mixed = [[list(channel) for channel in sample] for sample in rows]
    for sample, (share, partner) in enumerate(zip(shares, partners, strict=True)):
        for channel, values in enumerate(rows[sample]):
            lent = rows[partner][channel]
            for place, lent_place in zip(ranked(values), ranked(lent), strict=True):
                mixed[sample][channel][place] = share * values[place] + (1 - share) * lent[lent_place]
    return torch.tensor(mixed, dtype=features.dtype).view(features.shape)


def test_by_hand_half_of_two_distributions_lies_between_them() -> None:
    features = torch.tensor([[0.0, 4.0, 1.0], [30.0, 20.0, 10.0]], dtype=torch.float64).view(2, 1, 1, 3)
    # Beta(1e6, 1e6) is a half to three digits; the ranks 0, 1, 4 meet 10, 20, 30
    mixed = layer_with(alpha=1e6, partner="crossdomain")(features)
    torch.testing.assert_close(mixed.flatten().tolist(), [5.0, 17.0, 10.5, 17.0, 10.5, 5.0], rtol=0, atol=0.05)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [6, 7])
def test_it_is_the_plain_formula_with_its_draws(seed: int, count: int) -> None:
    features = maps(count, 3, 4, 5, seed=seed)
    torch.testing.assert_close(layer_with(seed)(features), plainly_mixed(features, *drawn(seed, count)))


def test_equal_values_rank_by_position() -> None:
    features = maps(6, 3, 4, 5).round()
    torch.testing.assert_close(layer_with(1)(features), plainly_mixed(features, *drawn(1, 6)))


def test_alpha_is_that_of_lambda() -> None:
    features = maps(6, 3, 4, 5)
    torch.testing.assert_close(layer_with(2, alpha=3.0)(features), plainly_mixed(features, *drawn(2, 6, alpha=3.0)))


def test_across_domains_every_sample_takes_from_the_other_half() -> None:
    features = torch.tensor([0.0] * 3 + [1.0] * 3, dtype=torch.float64)[:, None, None, None].expand(6, 2, 3, 3)
    for seed in range(20):
        mixed = layer_with(seed, alpha=1.0, partner="crossdomain")(features)
        assert ((mixed > 0) & (mixed < 1)).all()


def test_the_middle_of_an_odd_batch_stays_as_it_is_across_domains() -> None:
    features = maps(7, 3, 4, 5)
    mixed = layer_with(partner="crossdomain", alpha=1.0)(features)
    moved = (mixed - features).abs().flatten(1).amax(dim=1) > 1e-6
    assert moved.tolist() == [True] * 3 + [False] + [True] * 3


def test_a_mixed_sample_keeps_the_order_of_its_places() -> None:
    features = maps(6, 3, 4, 5)
    mixed = layer_with(alpha=1.0)(features)
    assert torch.equal(mixed.flatten(2).argsort(dim=-1), features.flatten(2).argsort(dim=-1))


def test_a_batch_of_one_stays_as_it_is() -> None:
    features = maps(1, 3, 4, 5)
    torch.testing.assert_close(layer_with()(features), features)


def test_its_gradient_is_1_to_the_content_and_the_rest_of_lambda_to_the_partner() -> None:
    features, weights = maps(4, 2, 2, 3).requires_grad_(), maps(4, 2, 2, 3, seed=1)
    (layer_with(3, alpha=1.0)(features) * weights).sum().backward()
    rows, incoming = features.detach().flatten(2).tolist(), weights.flatten(2).tolist()
    expected = weights.flatten(2).clone()
    for sample, (share, partner) in enumerate(zip(*drawn(3, 4, alpha=1.0), strict=True)):
        for channel in range(2):
            places = zip(ranked(rows[sample][channel]), ranked(rows[partner][channel]), strict=True)
            for place, lent_place in places:
                expected[partner, channel, lent_place] += (1 - share) * incoming[sample][channel][place]
    assert features.grad is not None
    torch.testing.assert_close(features.grad.flatten(2), expected)


def test_left_alone_it_is_the_papers() -> None:
    layer = EFDMix()
    assert (layer.p, layer.alpha, layer.partner) == (0.5, 0.1, "random")


@pytest.mark.parametrize("alpha", [0.0, -0.1, math.nan])
def test_an_alpha_that_beta_cannot_have_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"above 0; got {alpha}"):
        EFDMix(alpha=alpha)


def test_it_says_what_it_is() -> None:
    assert repr(EFDMix(0.2, 0.3, partner="crossdomain")) == "EFDMix(p=0.2, alpha=0.3, partner='crossdomain')"
