"""Algorithm 1: which samples a domain misses least."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.selection import least_missed


def algorithm_1(phi: list[list[float]], count: int) -> list[int]:
    """The pseudo-code, letter by letter; a chosen sample leaves the candidates, and one left over comes last."""
    candidates, chosen = list(range(len(phi))), []
    while len(chosen) < count:
        if len(candidates) == 1:
            return chosen + candidates
        pairs = [(i, j) for i in candidates for j in candidates if i < j]
        i, j = min(pairs, key=lambda pair: math.dist(phi[pair[0]], phi[pair[1]]))
        others = [z for z in candidates if z not in (i, j)]
        from_i = min((math.dist(phi[z], phi[i]) for z in others), default=math.inf)
        from_j = min((math.dist(phi[z], phi[j]) for z in others), default=math.inf)
        chosen.append(i if from_i < from_j else j)
        candidates.remove(chosen[-1])
    return chosen


def on_a_line(*places: float) -> Tensor:
    return torch.tensor(places, dtype=torch.float64)[:, None]


def test_of_the_nearest_pair_goes_the_one_nearer_to_the_rest() -> None:
    assert least_missed(on_a_line(0, 1, 3, 10), 1) == [1]
    assert least_missed(on_a_line(10, 3, 1, 0), 1) == [2]


def test_a_chosen_sample_is_no_candidate_any_more() -> None:
    assert least_missed(on_a_line(0, 1, 3, 10), 3) == [1, 2, 3]


def test_equal_minima_take_the_second_of_the_pair() -> None:
    assert least_missed(on_a_line(-5, 0, 1, 6), 1) == [2]


def test_of_equal_pairs_the_first_in_row_order_is_taken() -> None:
    assert least_missed(on_a_line(100, 101, 0, 1, 50), 1) == [0]


def test_with_two_left_the_second_goes() -> None:
    assert least_missed(on_a_line(4, 9), 1) == [1]


def test_all_samples_are_all_with_the_one_left_over_last() -> None:
    assert least_missed(on_a_line(4, 9), 2) == [1, 0]


@pytest.mark.parametrize("samples", [0, 1, 3])
def test_of_any_samples_none_can_be_asked_for(samples: int) -> None:
    assert least_missed(torch.zeros(samples, 4), 0) == []


def test_of_one_sample_the_one_is_given() -> None:
    assert least_missed(torch.zeros(1, 4), 1) == [0]


def test_identical_samples_go_from_the_second_on() -> None:
    assert least_missed(torch.ones(4, 2), 4) == [1, 2, 3, 0]


# whole numbers: their distances are exact, so that ties are ties
grids = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 3), min_size=width, max_size=width), min_size=1, max_size=9)
)


@given(phi=grids, data=st.data())
@settings(deadline=None, max_examples=200)
def test_the_choice_is_that_of_the_pseudo_code_with_ties_everywhere(phi: list[list[int]], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(phi)))
    assert least_missed(torch.tensor(phi, dtype=torch.float32), count) == algorithm_1(phi, count)


@given(samples=st.integers(2, 14), seed=st.integers(0, 999), dtype=st.sampled_from([torch.float64, torch.float32]))
@settings(deadline=None, max_examples=60)
def test_the_choice_is_that_of_the_pseudo_code(samples: int, seed: int, dtype: torch.dtype) -> None:
    phi = torch.randn(samples, 6, generator=torch.Generator().manual_seed(seed)).to(dtype)
    assert least_missed(phi, samples) == algorithm_1(phi.tolist(), samples)


def test_a_smaller_count_is_the_beginning_of_a_larger_one() -> None:
    phi = torch.randn(8, 6, generator=torch.Generator().manual_seed(0))
    for fewer, more in pairwise(range(9)):
        assert least_missed(phi, more)[:fewer] == least_missed(phi, fewer)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_compared_exactly(dtype: torch.dtype) -> None:
    phi = (torch.randn(9, 4, generator=torch.Generator().manual_seed(0)) * 1e3).to(dtype)
    assert least_missed(phi, 9) == algorithm_1(phi.tolist(), 9)


def test_a_far_origin_does_not_hide_the_nearest_pair() -> None:
    assert least_missed(on_a_line(0, 3e-4, 4e-4, 9e-4) + 1e6, 1) == [1]


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_huge_and_tiny_styles_are_chosen_from_as_any(scale: float) -> None:
    assert least_missed(on_a_line(0, 1, 3, 10).float() * scale, 4) == [1, 2, 3, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_style_that_is_no_number_is_nobodys_duplicate(value: float) -> None:
    assert least_missed(on_a_line(0, 1, value, 5), 4) == [1, 3, 2, 0]


def test_the_choice_needs_no_gradient() -> None:
    assert least_missed(on_a_line(0, 1, 3, 10).requires_grad_(), 1) == [1]


@pytest.mark.parametrize("count", [-1, 4])
def test_a_count_beyond_the_samples_is_refused_with_both_numbers(count: int) -> None:
    with pytest.raises(ValueError, match=rf"all of the 3 samples; asked for {count}"):
        least_missed(torch.zeros(3, 2), count)


def test_what_is_no_phi_is_refused_with_its_shape(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import torch
from styleshift.style.selection import least_missed
try:
    least_missed(torch.zeros(3), 1)
except ValueError as error:
    print(error)
""")
    assert "[B, 2C]; got [3]" in said
