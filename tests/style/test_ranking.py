"""Ranks: sorting and mixing against plain Python, on the fast path (float32) and on torch's own (float64)."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jaxtyping import config
from torch import Tensor

from styleshift.style.ranking import mixed_by_rank, sorted_with_places, wide

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
BOTH_PATHS = [torch.float32, torch.float64]
ODD = [-math.inf, -0.0, 0.0, 0.0, 1.0, 1.0, math.inf, math.nan, -math.nan]


Drawn: TypeAlias = Callable[..., Tensor]


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As in production: types unchecked. The check would come before our own words, and stops at traced sizes."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tied(*shape: int, seed: int = 0) -> Tensor:
    """Halves from -1 to 1, zeros of both signs: exact in every dtype, and most are equal to others."""
    return (noise(*shape, seed=seed) * 2).round().clamp(-2, 2) / 2


def odd(*shape: int, seed: int = 0) -> Tensor:
    """Ties, zeros of both signs, infinities, NaN."""
    chosen = torch.randint(len(ODD), shape, generator=torch.Generator().manual_seed(seed))
    return torch.tensor(ODD, dtype=torch.float64)[chosen]


DRAWN = st.sampled_from([noise, tied, odd])
BATCHES = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 9))


def mixing(samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Partners, oneself and another's among them, and shares."""
    partners = torch.randint(samples, (samples,), generator=torch.Generator().manual_seed(seed))
    return partners, shares_of(samples, seed)


def shares_of(samples: int, seed: int = 0) -> Tensor:
    return torch.rand(samples, generator=torch.Generator().manual_seed(seed + 1000), dtype=torch.float64)


def rough(dtype: torch.dtype) -> float:
    return 1e-12 if dtype == torch.float64 else 1e-6 + torch.finfo(dtype).eps


def plain_order(row: list[float]) -> list[int]:
    """Positions by ascending value, NaN last; Python's sort leaves equal ones in order of position."""
    return sorted(range(len(row)), key=lambda i: (math.isnan(row[i]), 0.0 if math.isnan(row[i]) else row[i]))


def plain_mixing(values: Tensor, partners: Tensor, own_share: Tensor) -> Tensor:
    """EFDMix, letter by letter: lambda * x[tau_i] + (1 - lambda) * y[kappa_i], written where x[tau_i] stood."""
    x, mixed = values.tolist(), torch.empty_like(values, dtype=torch.float64)
    for b, (partner, share) in enumerate(zip(partners.tolist(), own_share.tolist(), strict=True)):
        for c in range(values.shape[1]):
            own, other = x[b][c], x[partner][c]
            for tau, kappa in zip(plain_order(own), plain_order(other), strict=True):
                mixed[b, c, tau] = share * own[tau] + (1 - share) * other[kappa]
    return mixed


def plain_gradient(values: Tensor, partners: Tensor, own_share: Tensor, given: Tensor) -> Tensor:
    """1 to the content, and 1 - lambda to the partner's value of the same rank."""
    x, received = values.tolist(), given.double().clone()
    for b, (partner, share) in enumerate(zip(partners.tolist(), own_share.tolist(), strict=True)):
        for c in range(values.shape[1]):
            for tau, kappa in zip(plain_order(x[b][c]), plain_order(x[partner][c]), strict=True):
                received[partner, c, kappa] += (1 - share) * given[b, c, tau].item()
    return received


def gradient_of(values: Tensor, partners: Tensor, own_share: Tensor, given: Tensor) -> Tensor:
    leaf = values.clone().requires_grad_()
    return torch.autograd.grad(mixed_by_rank(leaf, partners, own_share), leaf, given.to(values.dtype))[0]


# sorted_with_places


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_is_last_and_zeros_of_both_signs_keep_their_order(dtype: torch.dtype) -> None:
    values = torch.tensor([3, math.nan, 0, -0.0, math.inf, -math.inf, 3], dtype=dtype)
    assert sorted_with_places(values)[1].tolist() == [5, 2, 3, 0, 6, 4, 1]


@given(
    shape=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    drawn=DRAWN,
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_values_are_sorted_as_in_plain_python(shape: list[int], drawn: Drawn, dtype: torch.dtype, seed: int) -> None:
    values = drawn(*shape, seed=seed).to(dtype)
    ascending, places = sorted_with_places(values)
    rows = values.reshape(math.prod(shape[:-1]), shape[-1])
    order = torch.tensor([plain_order(row) for row in rows.tolist()], dtype=torch.int64).view(shape)
    assert torch.equal(places, order)
    torch.testing.assert_close(ascending, values.gather(-1, order), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_lie_apart_in_memory_are_sorted_as_if_together(dtype: torch.dtype) -> None:
    values = noise(5, 4, 3).to(dtype).permute(1, 2, 0)
    assert torch.equal(sorted_with_places(values)[1], sorted_with_places(values.contiguous())[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradient_of_a_sorted_value_goes_to_where_it_stood(dtype: torch.dtype) -> None:
    values = torch.tensor([[3.0, 1.0, 2.0]], dtype=dtype, requires_grad=True)
    sorted_with_places(values)[0].backward(torch.tensor([[10.0, 20.0, 30.0]], dtype=dtype))
    assert values.grad.tolist() == [[30, 10, 20]]


def test_sorting_has_exact_first_and_second_derivatives() -> None:
    values = noise(2, 3, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda leaf: sorted_with_places(leaf)[0], values)
    assert torch.autograd.gradgradcheck(lambda leaf: sorted_with_places(leaf)[0], values)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("values", [torch.zeros(2, 3, dtype=torch.int32), torch.tensor(1.0)])
def test_what_has_no_ranks_is_refused_with_its_type_and_shape(values: Tensor) -> None:
    with pytest.raises(ValueError, match="last axis of floating-point values") as refused:
        sorted_with_places(values)
    assert f"{values.dtype} {list(values.shape)}" in str(refused.value)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
    ],
)
def test_only_half_precision_is_widened(dtype: torch.dtype, expected: torch.dtype) -> None:
    assert wide(torch.ones(2, dtype=dtype)).dtype == expected


# mixed_by_rank


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_quarter_of_1_5_3_and_the_rest_of_30_20_10_by_rank(dtype: torch.dtype) -> None:
    values = torch.tensor([[[1.0, 5.0, 3.0]], [[30.0, 20.0, 10.0]]], dtype=dtype)
    mixed = mixed_by_rank(values, torch.tensor([1, 0]), torch.tensor([0.25, 0.5]))
    assert mixed.tolist() == [[[7.75, 23.75, 15.75]], [[17.5, 11.5, 5.5]]]


@given(shape=BATCHES, drawn=DRAWN, dtype=st.sampled_from(DTYPES), learns=st.booleans(), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=120)
def test_values_are_mixed_as_in_plain_python(
    shape: tuple[int, int, int], drawn: Drawn, dtype: torch.dtype, learns: bool, seed: int
) -> None:
    values, partners, own_share = drawn(*shape, seed=seed).to(dtype), *mixing(shape[0], seed)
    mixed = mixed_by_rank(values.requires_grad_(learns), partners, own_share)
    expected = plain_mixing(values, partners, own_share)
    assert mixed.dtype == dtype
    torch.testing.assert_close(mixed.double(), expected, rtol=rough(dtype), atol=rough(dtype), equal_nan=True)


@given(shape=BATCHES, drawn=st.sampled_from([noise, tied]), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=80)
def test_the_content_receives_1_and_the_partner_the_share_it_lent(
    shape: tuple[int, int, int], drawn: Drawn, dtype: torch.dtype, seed: int
) -> None:
    values, given_back = drawn(*shape, seed=seed).to(dtype), tied(*shape, seed=seed + 1)
    partners, own_share = mixing(shape[0], seed)
    expected = plain_gradient(values, partners, own_share, given_back)
    received = gradient_of(values, partners, own_share, given_back)
    torch.testing.assert_close(received.double(), expected, rtol=rough(dtype), atol=rough(dtype))


@given(shape=BATCHES, drawn=DRAWN, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_both_paths_mix_alike(shape: tuple[int, int, int], drawn: Drawn, seed: int) -> None:
    values, partners, own_share = drawn(*shape, seed=seed).float(), *mixing(shape[0], seed)
    fast, slow = (mixed_by_rank(values.to(dtype), partners, own_share) for dtype in BOTH_PATHS)
    torch.testing.assert_close(fast.double(), slow, rtol=1e-6, atol=1e-6, equal_nan=True)


def second_derivative(values: Tensor, partners: Tensor, own_share: Tensor) -> Tensor:
    leaf, weight = values.clone().requires_grad_(), noise(*values.shape, seed=7).to(values.dtype)
    loss = (mixed_by_rank(leaf, partners, own_share).pow(3) * weight).sum()
    (first,) = torch.autograd.grad(loss, leaf, create_graph=True)
    return torch.autograd.grad((first * weight).sum(), leaf)[0]


@given(shape=BATCHES, drawn=st.sampled_from([noise, tied]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_both_paths_have_the_same_second_derivative(shape: tuple[int, int, int], drawn: Drawn, seed: int) -> None:
    values, partners, own_share = drawn(*shape, seed=seed).float(), *mixing(shape[0], seed)
    fast, slow = (second_derivative(values.to(dtype), partners, own_share) for dtype in BOTH_PATHS)
    torch.testing.assert_close(fast.double(), slow, rtol=1e-4, atol=1e-3)


def test_mixing_has_the_exact_derivative_of_its_gradient() -> None:
    values, partners, own_share = noise(4, 2, 5).requires_grad_(), torch.tensor([1, 1, 3, 0]), shares_of(4)
    assert torch.autograd.gradgradcheck(lambda leaf: mixed_by_rank(leaf, partners, own_share), values)


@pytest.mark.parametrize("length", [1 << 16, (1 << 16) + 1])  # the longest row whose positions fit into 16 bits
def test_the_last_place_of_a_long_row_is_not_forgotten(length: int) -> None:
    values = torch.arange(length, dtype=torch.float32).flip(0).expand(2, 1, length)
    given_back = torch.zeros(2, 1, length)
    given_back[0, 0, -1] = 1
    received = gradient_of(values, torch.tensor([1, 0]), torch.tensor([0.25, 0.25]), given_back)
    assert received.nonzero().tolist() == [[0, 0, length - 1], [1, 0, length - 1]]
    assert received[:, 0, -1].tolist() == [1, 0.75]


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_change_neither_values_nor_gradients(dtype: torch.dtype) -> None:
    values, given_back = tied(4, 3, 30_000).to(dtype), noise(4, 3, 30_000, seed=1)
    found = []
    for count in (1, 2):
        with threads(count):
            mixed = mixed_by_rank(values, torch.tensor([3, 3, 1, 0]), shares_of(4))
            received = gradient_of(values, torch.tensor([3, 3, 1, 0]), shares_of(4), given_back)
            found.append((mixed, received, *sorted_with_places(values)))
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-7, 1e4])
def test_very_small_and_large_values_are_mixed_in_proportion(dtype: torch.dtype, scale: float) -> None:
    values = (noise(3, 2, 8) * scale).to(dtype)
    expected = plain_mixing(values, torch.tensor([2, 0, 1]), shares_of(3))
    mixed = mixed_by_rank(values, torch.tensor([2, 0, 1]), shares_of(3)).double()
    # the smallest step of a half-precision number, beside rounding
    least = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    torch.testing.assert_close(mixed, expected, rtol=2 * torch.finfo(dtype).eps + 1e-6, atol=1e-6 * scale + least)


@pytest.mark.parametrize("dtype", BOTH_PATHS)
def test_opposite_infinities_mix_to_nan_without_a_warning(dtype: torch.dtype) -> None:
    values = torch.tensor([[[math.inf]], [[-math.inf]]], dtype=dtype)
    assert mixed_by_rank(values, torch.tensor([1, 0]), torch.full((2,), 0.5)).isnan().all()


@given(shape=BATCHES, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_values_that_change_places_take_their_mixture_along(
    shape: tuple[int, int, int], dtype: torch.dtype, seed: int
) -> None:
    values, partners, own_share = noise(*shape, seed=seed).to(dtype), *mixing(shape[0], seed)
    order = torch.randperm(shape[2], generator=torch.Generator().manual_seed(seed))
    # of equal values the first would change
    assume(all(len(row.unique()) == shape[2] for row in values.flatten(0, 1)))
    mixed = mixed_by_rank(values, partners, own_share)
    assert torch.equal(mixed_by_rank(values[..., order], partners, own_share), mixed[..., order])


@pytest.mark.parametrize("dtype", BOTH_PATHS)
@pytest.mark.parametrize("partners", [[1, 2], [-1, 0]])
def test_a_partner_outside_the_batch_is_refused_with_the_indices(partners: list[int], dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=r"from 0 to 1; got .* torch.randperm\(2\)") as refused:
        mixed_by_rank(noise(2, 1, 3).to(dtype), torch.tensor(partners), torch.ones(2))
    assert str(partners) in str(refused.value)


@pytest.mark.parametrize("dtype", BOTH_PATHS)
def test_no_samples_mix_to_none(dtype: torch.dtype) -> None:
    empty = torch.zeros(0, 2, 3, dtype=dtype)
    assert gradient_of(empty, torch.zeros(0, dtype=torch.int64), torch.zeros(0), empty).shape == (0, 2, 3)


@pytest.mark.parametrize("dtype", BOTH_PATHS)
def test_partners_may_be_int32_and_shares_of_another_type(dtype: torch.dtype) -> None:
    values, partners, own_share = noise(3, 2, 5).to(dtype), torch.tensor([2, 0, 1]), torch.tensor([0.5, 0.25, 0.75])
    expected = gradient_of(values, partners, own_share, values)
    assert torch.equal(gradient_of(values, partners.int(), own_share.half(), values), expected)
    assert torch.equal(gradient_of(values, partners.int(), own_share.double(), values), expected)


# what torch's tracing and compiling know of the operators


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", BOTH_PATHS)
@pytest.mark.parametrize("learns", [True, False])
def test_sorting_is_a_sound_operator(dtype: torch.dtype, learns: bool) -> None:
    values = noise(3, 2, 5).to(dtype).requires_grad_(learns)
    torch.library.opcheck(torch.ops.styleshift.sorted_with_places.default, (values,))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", BOTH_PATHS)
@pytest.mark.parametrize("learns", [True, False])
def test_mixing_is_a_sound_operator(dtype: torch.dtype, learns: bool) -> None:
    values, own_share = noise(3, 2, 5).to(dtype).requires_grad_(learns), shares_of(3).to(dtype)
    inputs = (values, torch.tensor([2, 0, 1]), own_share, learns)
    torch.library.opcheck(torch.ops.styleshift.mixed_by_rank.default, inputs)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", BOTH_PATHS)
def test_pulling_gradients_back_is_a_sound_operator(dtype: torch.dtype) -> None:
    values, partners, own_share = noise(3, 2, 5).to(dtype), torch.tensor([2, 0, 1]), shares_of(3).to(dtype)
    _, places = torch.ops.styleshift.mixed_by_rank(values, partners, own_share, True)
    inputs = (noise(3, 2, 5, seed=1).to(dtype).requires_grad_(), partners, own_share, places)
    torch.library.opcheck(torch.ops.styleshift.mixed_by_rank_backward.default, inputs)
