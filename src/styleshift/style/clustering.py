"""Pseudo-domains: k-means in style space, for images that come without domain labels (paper appendix).

Reading: k-means++ on Phi as it is, not normalised, because Eq. 7 compares it so; the best of several restarts by the
sum of squared distances. Clusters are numbered by size, the largest first.
"""

import torch
from jaxtyping import Float64
from torch import Tensor

from styleshift.style.shapes import Labels, Phi

_ROUNDS = 300  # Lloyd's iterations; on styles it settles within a few dozen


def pseudo_domains(phi: Phi, clusters: int, seed: int = 0, restarts: int = 10) -> Labels:
    """The cluster of every sample.

    clusters: how many, in [1, samples]; the paper takes 3.
    seed: of the random starts.
    restarts: how many starts the best is taken from.
    """
    if phi.ndim != 2:
        raise ValueError(f"k-means clusters one Phi a sample, [B, 2C]; got {list(phi.shape)}")
    if not 1 <= clusters <= len(phi):
        raise ValueError(f"k-means makes between 1 and {len(phi)} clusters of {len(phi)} styles; asked for {clusters}")
    if restarts < 1:
        raise ValueError(f"the best of at least one start is taken; asked for {restarts} restarts")
    if not phi.isfinite().all():
        raise ValueError("k-means needs finite styles; got NaN or infinity")
    points = phi.detach().to("cpu", torch.float64)
    generator = torch.Generator().manual_seed(seed)
    attempts = [_lloyd(points, _spread_out(points, clusters, generator)) for _ in range(restarts)]
    _, labels = min(attempts, key=lambda attempt: attempt[0])
    return _by_size(labels, clusters).to(phi.device)


def _spread_out(points: Float64[Tensor, "B P"], clusters: int, generator: torch.Generator) -> Float64[Tensor, "K P"]:
    """k-means++: each further centre a sample, drawn by its squared distance to the centres so far."""
    chosen = [int(torch.randint(len(points), (), generator=generator))]
    nearest = _squared(points, points[chosen])[:, 0]
    while len(chosen) < clusters:
        weights = nearest if nearest.sum() > 0 else torch.ones_like(nearest)
        chosen.append(int(torch.multinomial(weights, 1, generator=generator)))
        nearest = torch.minimum(nearest, _squared(points, points[chosen[-1:]])[:, 0])
    return points[chosen]


def _lloyd(points: Float64[Tensor, "B P"], centres: Float64[Tensor, "K P"]) -> tuple[float, Labels]:
    labels = _squared(points, centres).argmin(dim=1)
    for _ in range(_ROUNDS):
        centres = _means(points, labels, centres)
        before, labels = labels, _squared(points, centres).argmin(dim=1)
        if torch.equal(before, labels):
            break
    return float(_squared(points, centres).min(dim=1).values.sum()), labels


def _means(points: Float64[Tensor, "B P"], labels: Labels, centres: Float64[Tensor, "K P"]) -> Float64[Tensor, "K P"]:
    counts = torch.bincount(labels, minlength=len(centres))
    sums = torch.zeros_like(centres).index_add_(0, labels, points)
    means = sums / counts.clamp(min=1)[:, None]
    if (empty := counts == 0).any():
        # a centre that lost all its samples starts again where the others serve worst
        worst = _squared(points, means[~empty]).min(dim=1).values.argsort(descending=True)
        means[empty] = points[worst[: int(empty.sum())]]
    return means


def _squared(points: Float64[Tensor, "B P"], centres: Float64[Tensor, "K P"]) -> Float64[Tensor, "B K"]:
    return torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist").square()


def _by_size(labels: Labels, clusters: int) -> Labels:
    order = torch.bincount(labels, minlength=clusters).argsort(descending=True, stable=True)
    return torch.empty_like(order).scatter(0, order, torch.arange(clusters))[labels]
