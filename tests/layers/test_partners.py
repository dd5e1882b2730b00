"""Who lends a sample its style."""

from collections import Counter
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from styleshift.layers._partners import Partner, expect_partner, partners
from styleshift.style.draws import Draws


def seeded(seed: int = 0) -> Draws:
    return Draws(torch.Generator().manual_seed(seed))


@given(how=st.sampled_from(get_args(Partner)), count=st.integers(0, 33), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_every_sample_lends_its_style_once(how: Partner, count: int, seed: int) -> None:
    assert sorted(partners(how, count, seeded(seed)).tolist()) == list(range(count))


@given(half=st.integers(1, 16), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_across_domains_a_partner_is_of_the_other_half(half: int, seed: int) -> None:
    found = partners("crossdomain", 2 * half, seeded(seed))
    assert (found[:half] >= half).all()
    assert (found[half:] < half).all()


@given(half=st.integers(0, 16), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_across_domains_the_middle_of_an_odd_batch_is_its_own_partner(half: int, seed: int) -> None:
    found = partners("crossdomain", 2 * half + 1, seeded(seed))
    assert found[half] == half
    assert (found[:half] > half).all()
    assert (found[half + 1 :] < half).all()


def test_across_domains_two_samples_are_each_others_partners() -> None:
    assert partners("crossdomain", 2, seeded()).tolist() == [1, 0]


def test_across_domains_each_half_has_an_order_of_its_own() -> None:
    found = partners("crossdomain", 20, seeded())
    assert not torch.equal(found[:10] - 10, found[10:])


@pytest.mark.parametrize("how", get_args(Partner))
def test_every_possible_partner_is_equally_likely(how: Partner) -> None:
    draws = seeded()
    chosen = Counter(int(partners(how, 4, draws)[0]) for _ in range(2000))
    possible = range(4) if how == "random" else (2, 3)
    assert set(chosen) == set(possible)
    for partner in possible:
        assert chosen[partner] / 2000 == pytest.approx(1 / len(possible), abs=0.04)


def test_a_random_partner_is_one_permutation_drawn() -> None:
    assert torch.equal(partners("random", 9, seeded(2)), seeded(2).permutation(9))


@pytest.mark.parametrize("how", get_args(Partner))
def test_equal_seeds_give_equal_partners(how: Partner) -> None:
    assert torch.equal(partners(how, 31, seeded(3)), partners(how, 31, seeded(3)))


@pytest.mark.parametrize("how", get_args(Partner))
def test_partners_that_there_are_are_taken(how: Partner) -> None:
    expect_partner(how)


def test_a_partner_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"one of \('random', 'crossdomain'\); got 'nearest'"):
        expect_partner("nearest")
