"""What the layers that act by chance share: a coin in training, nothing in evaluation."""

import math

import pytest
import torch

from styleshift.layers._chance import Chance, expect_correction, expect_positive
from styleshift.style.draws import Draws
from styleshift.style.shapes import Features

FEATURES = torch.randn(3, 2, 4, 4, generator=torch.Generator().manual_seed(0))


class Noisy(Chance):
    """Adds one random number to all features."""

    def restyled(self, features: Features, draws: Draws) -> Features:
        return features + draws.normal(1)


def noisy(p: float, seed: int = 0) -> Noisy:
    return Noisy(p, torch.Generator().manual_seed(seed)).train()


def times_acted(p: float, forwards: int) -> int:
    layer = noisy(p)
    return sum(layer(FEATURES) is not FEATURES for _ in range(forwards))


def test_with_p_0_it_never_acts() -> None:
    assert times_acted(0.0, 300) == 0


def test_with_p_1_it_acts_at_every_forward() -> None:
    assert times_acted(1.0, 300) == 300


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_it_acts_as_often_as_p_says(p: float) -> None:
    assert times_acted(p, 2000) / 2000 == pytest.approx(p, abs=0.04)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_in_eval_mode_it_gives_the_very_same_tensor(p: float) -> None:
    layer = noisy(p).eval()
    assert all(layer(FEATURES) is FEATURES for _ in range(20))


def test_in_eval_mode_it_draws_nothing() -> None:
    layer = noisy(1.0).eval()
    assert layer.draws.generator is not None
    before = layer.draws.generator.get_state()
    layer(FEATURES)
    assert torch.equal(layer.draws.generator.get_state(), before)


def test_it_flips_the_coin_before_anything_else_is_drawn() -> None:
    replayed = Draws(torch.Generator().manual_seed(4))
    assert replayed.coin(0.99)
    assert torch.equal(noisy(0.99, seed=4)(FEATURES), FEATURES + replayed.normal(1))


def test_a_coin_that_falls_against_it_is_its_only_draw() -> None:
    layer, replayed = noisy(0.0, seed=4), Draws(torch.Generator().manual_seed(4))
    layer(FEATURES)
    replayed.coin(0.0)
    assert layer.draws.uniform(1) == replayed.uniform(1)


def test_back_in_training_mode_it_acts_again() -> None:
    layer = noisy(1.0).eval()
    assert layer.train()(FEATURES) is not FEATURES


def test_without_a_generator_it_follows_the_global_one() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(6)
        first = Noisy(0.9, None).train()(FEATURES)
        torch.manual_seed(6)
        assert torch.equal(Noisy(0.9, None).train()(FEATURES), first)


def test_without_what_it_does_it_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="restyled"):
        Chance(0.5, None)  # type: ignore[abstract]


def test_it_says_its_probability() -> None:
    assert repr(noisy(0.25)) == "Noisy(p=0.25)"


@pytest.mark.parametrize("p", [-0.001, 1.001, math.nan, math.inf])
def test_what_is_no_probability_is_refused_with_the_layers_name(p: float) -> None:
    with pytest.raises(ValueError, match=rf"p is the probability that Noisy acts, in \[0, 1\]; got {p}"):
        Noisy(p, None)


@pytest.mark.parametrize("alpha", [0.0, -0.1, math.nan, math.inf])
def test_an_alpha_that_beta_cannot_have_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=rf"parameter of Beta\(alpha, alpha\), a number above 0; got {alpha}"):
        expect_positive(alpha)


def test_any_alpha_above_0_is_taken() -> None:
    expect_positive(1e-9)


@pytest.mark.parametrize("correction", [-1, 2])
def test_another_correction_than_0_and_1_is_refused(correction: int) -> None:
    with pytest.raises(ValueError, match=rf"0 \(divide by HW, as in Eq. 2\) or 1 \(by HW - 1\); got {correction}"):
        expect_correction(correction)


@pytest.mark.parametrize("correction", [0, 1])
def test_the_corrections_0_and_1_are_taken(correction: int) -> None:
    expect_correction(correction)
