"""Chance: from one explicit generator, with the distributions the paper names."""

import numpy as np
import pytest
import torch

from styleshift.style.draws import Draws


def seeded(seed: int = 0) -> Draws:
    return Draws(torch.Generator().manual_seed(seed))


def one_of_each(draws: Draws) -> list[torch.Tensor]:
    coin = torch.tensor(draws.coin(0.5))
    return [coin, draws.beta(0.1, 5), draws.permutation(7), draws.normal(2, 3), draws.uniform(4)]


def test_equal_seeds_draw_equal_numbers() -> None:
    assert all(map(torch.equal, one_of_each(seeded(3)), one_of_each(seeded(3))))


def test_a_generator_of_its_own_leaves_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    one_of_each(seeded())
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_generator_the_global_one_is_drawn_from() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = one_of_each(Draws())
        torch.manual_seed(5)
        assert all(map(torch.equal, first, one_of_each(Draws())))


def test_a_saved_state_goes_on_where_it_was() -> None:
    generator = torch.Generator().manual_seed(1)
    draws = Draws(generator)
    one_of_each(draws)
    state = generator.get_state()
    first = one_of_each(draws)
    generator.set_state(state)
    assert all(map(torch.equal, first, one_of_each(draws)))


@pytest.mark.parametrize(("p", "always"), [(0.0, False), (1.0, True)])
def test_a_coin_of_0_or_1_is_certain(p: float, always: bool) -> None:
    draws = seeded()
    assert {draws.coin(p) for _ in range(200)} == {always}


def test_a_coin_falls_as_often_as_p_says() -> None:
    draws = seeded()
    assert np.mean([draws.coin(0.3) for _ in range(4000)]) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_beta_draws_are_distributed_as_beta(alpha: float) -> None:
    drawn = np.sort(seeded().beta(alpha, 20_000).numpy())
    # in float32 as well, where much of Beta(0.1, 0.1) is exactly 1
    other = np.sort(np.random.default_rng(0).beta(alpha, alpha, 20_000).astype(np.float32))
    together = np.concatenate([drawn, other])
    ranks = np.searchsorted(drawn, together, "right"), np.searchsorted(other, together, "right")
    assert abs(ranks[0] - ranks[1]).max() / 20_000 < 0.025  # Kolmogorov-Smirnov, far beyond a chance of 1e-5


def test_beta_draws_are_numbers_between_0_and_1_in_float32() -> None:
    drawn = seeded().beta(0.1, 100_000)
    assert drawn.dtype == torch.float32
    assert drawn.isfinite().all()
    assert 0 <= drawn.min() <= drawn.max() <= 1


def test_a_permutation_has_every_number_once() -> None:
    assert sorted(seeded().permutation(9).tolist()) == list(range(9))


def test_normal_draws_have_the_shape_asked_for_and_mean_0_and_deviation_1() -> None:
    drawn = seeded().normal(100, 200)
    assert drawn.shape == (100, 200)
    assert drawn.mean().item() == pytest.approx(0, abs=0.03)
    assert drawn.std().item() == pytest.approx(1, abs=0.03)


def test_uniform_draws_fill_0_to_1_without_1() -> None:
    drawn = seeded().uniform(10_000)
    assert 0 <= drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1


@pytest.mark.parametrize("count", [0, 1])
def test_no_draw_and_one_draw_are_possible(count: int) -> None:
    assert seeded().beta(0.1, count).shape == seeded().permutation(count).shape == (count,)
