"""Pseudo-domains: k-means in style space."""

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.clustering import pseudo_domains


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cost(phi: list[list[float]], labels: list[int]) -> float:
    """The sum of squared distances to the means of the clusters."""
    total = 0.0
    for cluster in set(labels):
        members = [point for point, label in zip(phi, labels, strict=True) if label == cluster]
        mean = [sum(column) / len(members) for column in zip(*members, strict=True)]
        total += sum(math.dist(point, mean) ** 2 for point in members)
    return total


def three_groups(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    groups = torch.tensor([1] * 20 + [0] * 30 + [2] * 10)
    return (noise(60, 4) + 50 * torch.eye(3, 4, dtype=torch.float64)[groups]).to(dtype), groups


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_groups_far_apart_are_found_and_numbered_by_size(dtype: torch.dtype) -> None:
    phi, groups = three_groups(dtype)
    assert torch.equal(pseudo_domains(phi, 3), groups)


@given(phi=st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=2), min_size=3, max_size=5), k=st.integers(1, 3))
@settings(deadline=None, max_examples=12)
def test_few_samples_are_clustered_as_well_as_can_be(phi: list[list[int]], k: int) -> None:
    labels = pseudo_domains(torch.tensor(phi, dtype=torch.float64), k, restarts=30)
    best = min(cost(phi, list(each)) for each in product(range(k), repeat=len(phi)))
    assert cost(phi, labels.tolist()) == pytest.approx(best)


@given(seed=st.integers(0, 99), k=st.integers(1, 5))
@settings(deadline=None, max_examples=10)
def test_every_sample_is_in_the_cluster_whose_mean_is_nearest(seed: int, k: int) -> None:
    phi = noise(30, 4, seed=seed)
    labels = pseudo_domains(phi, k, seed)
    means = torch.stack([phi[labels == cluster].mean(dim=0) for cluster in range(k)])
    distances = (phi[:, None] - means).square().sum(dim=2)
    assert (distances[range(30), labels] <= distances.min(dim=1).values + 1e-9).all()


def test_clusters_are_numbered_by_size() -> None:
    sizes = torch.bincount(pseudo_domains(noise(50, 3), 4), minlength=4)
    assert torch.equal(sizes, sizes.sort(descending=True).values)


def test_equal_seeds_give_equal_clusters() -> None:
    phi = noise(40, 3)
    assert torch.equal(pseudo_domains(phi, 4, seed=7), pseudo_domains(phi, 4, seed=7))


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    pseudo_domains(noise(10, 3), 2)
    assert torch.equal(torch.get_rng_state(), before)


def test_more_restarts_are_never_worse() -> None:
    phi = noise(60, 3)
    costs = [cost(phi.tolist(), pseudo_domains(phi, 6, restarts=restarts).tolist()) for restarts in (1, 5, 20)]
    assert costs == sorted(costs, reverse=True)


def test_one_cluster_holds_all() -> None:
    assert pseudo_domains(noise(7, 3), 1).tolist() == [0] * 7


def test_as_many_clusters_as_samples_are_one_each() -> None:
    assert sorted(pseudo_domains(noise(5, 3), 5).tolist()) == [0, 1, 2, 3, 4]


def test_identical_samples_share_a_cluster() -> None:
    assert pseudo_domains(torch.ones(6, 3), 3).tolist() == [0] * 6


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_huge_and_tiny_styles_are_clustered_as_any(scale: float) -> None:
    phi, groups = three_groups()
    assert torch.equal(pseudo_domains((phi * scale).float(), 3), groups)


def test_the_clusters_need_no_gradient() -> None:
    phi, groups = three_groups()
    assert torch.equal(pseudo_domains(phi.requires_grad_(), 3), groups)


@pytest.mark.parametrize("clusters", [0, 6])
def test_a_number_of_clusters_that_cannot_be_is_refused(clusters: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and 5 clusters of 5 styles; asked for {clusters}"):
        pseudo_domains(noise(5, 3), clusters)


def test_no_start_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="asked for 0 restarts"):
        pseudo_domains(noise(5, 3), 2, restarts=0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_styles_that_are_no_numbers_are_refused(value: float) -> None:
    phi = noise(5, 3)
    phi[2, 1] = value
    with pytest.raises(ValueError, match="NaN or infinity"):
        pseudo_domains(phi, 2)


def test_what_is_no_phi_is_refused_with_its_shape(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import torch
from styleshift.style.clustering import pseudo_domains
try:
    pseudo_domains(torch.zeros(3), 2)
except ValueError as error:
    print(error)
""")
    assert "[B, 2C]; got [3]" in said
