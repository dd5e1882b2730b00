"""Coordinates in which a domain's samples scatter alike, against literal ones, and what may happen to styles there."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style import whitening
from styleshift.style.shifting import far_score, scores_of
from styleshift.style.statistics import Style
from styleshift.style.whitening import Whitening, logged, whitening_of

Scoring = Callable[..., list[float]]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unlogged(coordinates: Tensor) -> Tensor:
    """The Phi of which these are the logged coordinates."""
    mean, log = coordinates.chunk(2, dim=1)
    return torch.cat([mean, log.exp()], dim=1)


def heaps(width: int = 4, count: int = 50, seed: int = 0) -> list[Tensor]:
    """Three domains of unlike sizes, in logged coordinates, scattered by 0.06 to 0.6 between the axes."""
    one, other = (torch.linalg.qr(noise(width, width, seed=seed + number))[0] for number in (30, 31))
    mixing = one @ (0.2 * torch.logspace(-0.5, 0.5, width, dtype=torch.float64)).diag() @ other
    return [
        noise(count + 20 * domain, width, seed=seed + domain) @ mixing + 0.5 * noise(width, seed=seed + 9 + domain)
        for domain in range(3)
    ]


def strangers(width: int = 4, count: int = 9, seed: int = 5) -> Tensor:
    return (2 * noise(count, width, seed=seed)).clamp(-3, 3)  # no deviation is below the least


def found_on(domains: list[Tensor]) -> Whitening:
    """The whitening of domains in logged coordinates."""
    counts = torch.tensor([len(rows) for rows in domains])
    centres = torch.stack([unlogged(rows).mean(dim=0) for rows in domains])
    return whitening_of(unlogged(torch.cat(domains)), torch.arange(len(domains)).repeat_interleave(counts), centres)


def scored(domains: list[Tensor], strange: Tensor) -> Tensor:
    """Scores in the whitening of these domains, all in logged coordinates."""
    centres = torch.stack([unlogged(rows).mean(dim=0) for rows in domains])
    return scores_of(unlogged(strange), centres, found_on(domains))


# --- what it computes


def test_means_stay_and_deviations_become_their_logarithms() -> None:
    e = math.e
    given = torch.tensor([[3.0, -2, 1, e], [0, 0, e**-1, e**3]])
    torch.testing.assert_close(logged(given), torch.tensor([[3.0, -2, 0, 1], [0, 0, -1, 3]]))


def test_a_deviation_below_that_of_a_constant_channel_counts_as_it() -> None:
    assert logged(torch.tensor([[0.0, 0], [0, 1e-3], [0, 1e-9]]))[:, 1].unique().tolist() == [
        pytest.approx(math.log(1e-3))
    ]


def test_on_two_axes_it_is_one_over_each_ones_deviation() -> None:
    scatter = torch.tensor([[6.0, 0], [-6, 0], [0, 0.75], [0, -0.75]]).double()  # variances 18 and 9/32
    found = found_on([scatter, scatter + torch.tensor([10.0, 2])])
    torch.testing.assert_close(found.matrix, torch.tensor([[18**-0.5, 0], [0, (9 / 32) ** -0.5]]).double())
    centres = torch.tensor([[0, 0], [10 * 18**-0.5, 2 * (9 / 32) ** -0.5]]).double()
    torch.testing.assert_close(found.centres, centres)


def test_half_correlated_axes_keep_nine_tenths_of_that() -> None:
    # variances 1, covariance 1/2, of which .45 is left: eigenvalues 1.45 and .55 along the diagonals
    scatter = torch.tensor([[1.0, 1], [1, 1], [1, 1], [-1, -1], [-1, -1], [-1, -1], [1, -1], [-1, 1]]).double()
    high, low = 1.45**-0.5, 0.55**-0.5
    wanted = torch.tensor([[high + low, high - low], [high - low, high + low]]).double() / 2
    torch.testing.assert_close(found_on([scatter]).matrix, wanted)


@pytest.mark.parametrize("width", [2, 4, 8])
def test_it_is_the_inverse_root_of_the_pooled_covariance_a_tenth_of_the_way_to_its_diagonal(width: int) -> None:
    every = [rows.numpy() for rows in heaps(width)]
    apart = [row - rows.mean(axis=0) for rows in every for row in rows]
    shrunk = np.zeros((width, width))
    for i in range(width):
        for j in range(width):
            shrunk[i, j] = math.fsum(row[i] * row[j] for row in apart) / len(apart) * (1.0 if i == j else 0.9)
    variances, directions = np.linalg.eigh(shrunk)
    wanted = sum(np.outer(v, v) / math.sqrt(variance) for variance, v in zip(variances, directions.T, strict=True))

    found = found_on(heaps(width))

    np.testing.assert_allclose(found.matrix.numpy(), wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.matrix.numpy() @ shrunk @ found.matrix.numpy(), np.eye(width), atol=1e-8)
    centres = np.stack([rows.mean(axis=0) for rows in every]) @ wanted
    np.testing.assert_allclose(found.centres.numpy(), centres, rtol=1e-8, atol=1e-8)


def test_scores_are_mahalanobis_gaps_in_mahalanobis_spreads(whitened_scores: Scoring) -> None:
    found = scored(heaps(), strangers())
    wanted = whitened_scores([unlogged(rows) for rows in heaps()], unlogged(strangers()))
    torch.testing.assert_close(found.tolist(), wanted, rtol=1e-8, atol=0)
    centres = torch.stack([unlogged(rows).mean(dim=0) for rows in heaps()])
    assert not torch.allclose(found, scores_of(unlogged(strangers()), centres), rtol=0.05)


def test_where_the_domains_lie_does_not_matter_to_the_matrix() -> None:
    moved = [
        rows + torch.tensor([shift, -shift, 0, shift / 99]) for rows, shift in zip(heaps(), (0, 64, 99), strict=True)
    ]
    torch.testing.assert_close(found_on(moved).matrix, found_on(heaps()).matrix)


def test_a_domain_without_samples_has_the_centre_of_its_mean() -> None:
    domains, mean = heaps(), unlogged(strangers(count=1))
    centres = torch.cat([mean, mean * 0, mean * 0])
    rows = torch.cat(domains[:2])
    found = whitening_of(unlogged(rows), torch.tensor([1] * len(domains[0]) + [2] * len(domains[1])), centres)
    own = torch.stack([strangers(count=1)[0], domains[0].mean(dim=0), domains[1].mean(dim=0)])
    torch.testing.assert_close(found.centres, own @ found.matrix)
    torch.testing.assert_close(found.matrix, found_on(domains[:2]).matrix)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 999), st.lists(st.floats(0.2, 5), min_size=4, max_size=4))
def test_the_unit_of_a_channel_does_not_matter(seed: int, units: list[float]) -> None:
    domains, strange, unit = heaps(seed=seed), strangers(seed=seed + 1), torch.tensor(units).double()

    def measured_in(unit: Tensor, rows: Tensor) -> Tensor:
        return logged(unlogged(rows) * unit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whitening, "_LEAST_VARIANCE", 1e-9)  # a channel in a tiny unit is no dead one
        found = scored([measured_in(unit, rows) for rows in domains], measured_in(unit, strange))
        torch.testing.assert_close(found, scored(domains, strange), rtol=1e-6, atol=0)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 999), st.lists(st.floats(0.2, 5), min_size=4, max_size=4))
def test_without_shrinkage_no_invertible_linear_map_matters(seed: int, stretched: list[float]) -> None:
    one, other = (torch.linalg.qr(noise(4, 4, seed=seed + number))[0] for number in (20, 21))
    mapping = one @ (torch.tensor(stretched).double() / 5).diag() @ other  # so that no deviation falls below the least
    domains, strange = heaps(count=200, seed=seed), strangers(seed=seed + 1) / 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whitening, "_SHRINKAGE", 0.0)
        patch.setattr(whitening, "_LEAST_VARIANCE", 1e-9)
        found = scored([rows @ mapping for rows in domains], strange @ mapping)
        torch.testing.assert_close(found, scored(domains, strange), rtol=1e-6, atol=0)


def test_without_shrinkage_the_samples_scatter_by_1_in_every_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whitening, "_SHRINKAGE", 0.0)
    found = found_on(heaps())
    white = torch.cat([found.of(unlogged(rows)) - centre for rows, centre in zip(heaps(), found.centres, strict=True)])
    torch.testing.assert_close(white.T @ white / len(white), torch.eye(4).double())


# --- what may be dead, few or in half precision


def with_dead(coordinates: Tensor, std: float = 1e-3) -> Tensor:
    """The same styles with a third channel of mean 0 and this deviation."""
    (mean, log), rest = coordinates.chunk(2, dim=1), torch.zeros(len(coordinates), 1).double()
    return torch.cat([mean, rest, log, rest + math.log(std)], dim=1)


def test_a_dead_channel_is_as_if_it_were_not_there() -> None:
    found = found_on([with_dead(rows) for rows in heaps()])
    assert found.matrix.isfinite().all()
    scores = scored([with_dead(rows) for rows in heaps()], with_dead(strangers()))
    torch.testing.assert_close(scores, scored(heaps(), strangers()), rtol=1e-6, atol=0)


def test_a_dead_channel_that_comes_alive_gives_a_finite_score() -> None:
    domains = [with_dead(rows) for rows in heaps()]
    alive, dead = (scored(domains, with_dead(strangers(), std)) for std in (3.0, 1e-3))
    assert alive.isfinite().all()
    assert (alive > dead).all()


def test_where_nothing_varies_scores_are_finite() -> None:
    assert scored([torch.full((5, 4), level).double() for level in (0.0, 1.0)], strangers()).isfinite().all()


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_samples_than_directions_give_finite_scores(count: int) -> None:
    assert scored([rows[:count] for rows in heaps(width=8)], strangers(width=8)).isfinite().all()


def test_no_sample_at_all_gives_finite_scores() -> None:
    centres = unlogged(strangers(count=3))
    found = whitening_of(centres[:0], torch.zeros(0, dtype=torch.long), centres)
    assert scores_of(unlogged(strangers()), centres, found).isfinite().all()


def test_one_source_leaves_everything_far() -> None:
    assert scored(heaps()[:1], strangers()).tolist() == [math.inf] * 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_come_in_the_precision_of_the_styles(dtype: torch.dtype) -> None:
    assert scores_of(unlogged(strangers()).to(dtype), unlogged(strangers()).to(dtype), found_on(heaps())).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_maps_are_scored_as_their_values_are(dtype: torch.dtype) -> None:
    sources, maps = Style.of_phi(unlogged(strangers(count=3)).float()), noise(5, 2, 3, 3).to(dtype)
    found = far_score(maps, sources, found_on(heaps()))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, far_score(maps.float(), sources, found_on(heaps())))


def test_autocast_rounds_no_score() -> None:
    maps, sources = noise(5, 2, 3, 3).float(), Style.of_phi(unlogged(strangers(count=3)).float())
    wanted = far_score(maps, sources, found_on(heaps()))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(far_score(maps, sources, found_on(heaps())), wanted)


def test_a_dead_channel_does_not_decide_by_its_rounding() -> None:
    """Its mean never varied but for the last bit, and in another precision comes 0.004 off."""
    domains = [unlogged(rows) for rows in heaps(width=8, count=200)]
    for rows in domains:
        rows[:, 0] = 0.7
    counts = torch.tensor([len(rows) for rows in domains])
    centres = torch.stack([rows.mean(dim=0) for rows in domains])
    found = whitening_of(torch.cat(domains), torch.arange(3).repeat_interleave(counts), centres)
    off = domains[0].clone()
    off[:, 0] += 0.004
    torch.testing.assert_close(scores_of(off, centres, found), scores_of(domains[0], centres, found), rtol=0.02, atol=0)
