"""How far apart two styles are, by how familiar images scatter (beyond the paper; what alpha="auto" measures by).

    logged         [mu, log sigma]: a deviation twice as large is as far as one half as large
    Whitening      the coordinates in which the samples of a domain scatter alike in all directions
    whitening_of   the same, found on samples of the sources

Reading: the covariance of the samples about their domain's mean, pooled over the domains, and a tenth of the way to its
diagonal, since it has more entries than a small sample can tell.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from styleshift.style.shapes import Centres, Phi

_SHRINKAGE = 0.1
_LEAST_STD = 1e-3  # of a constant channel, by the epsilon in `style_of`
_LEAST_VARIANCE = 1e-3  # of the largest one; with less, half precision's rounding in a dead channel counts as far


class Whitening(NamedTuple):
    """matrix: what `logged` styles are multiplied by. centres: the sources' there."""

    matrix: Float[Tensor, "P P"]
    centres: Centres

    def of(self, phi: Phi) -> Phi:
        """These styles in the coordinates."""
        kind = widest(phi.device)
        return logged(phi).to(kind) @ self.matrix.to(kind)


def widest(device: torch.device) -> torch.dtype:
    """float64, which autocast does not round to half precision; float32 where there is no other."""
    return torch.float32 if device.type == "mps" else torch.float64


def logged(phi: Phi) -> Phi:
    """The same with logarithms of the deviations."""
    mean, std = phi.chunk(2, dim=1)
    return torch.cat([mean, std.clamp(min=_LEAST_STD).log()], dim=1)


def whitening_of(sample: Phi, domain: Integer[Tensor, "B"], centres: Centres) -> Whitening:
    """Found on Phi of some images and the index of their domains.

    centres: mean Phi of every domain, taken for one of which there is no sample.
    """
    logs = logged(sample.double())
    counts = torch.bincount(domain, minlength=len(centres))[:, None]
    sums = torch.zeros_like(centres.double()).index_add_(0, domain, logs)
    means = torch.where(counts > 0, sums / counts.clamp(min=1), logged(centres.double()))
    apart = logs - means[domain]
    covariance = apart.T @ apart / max(1, len(apart))
    variances, directions = torch.linalg.eigh(torch.lerp(covariance, covariance.diagonal().diag(), _SHRINKAGE))
    # a direction in which nothing varied, as of a dead channel, would weigh infinitely much
    least = _LEAST_VARIANCE * max(float(variances[-1]), _LEAST_VARIANCE)
    matrix = (directions * variances.clamp(min=least).rsqrt()) @ directions.T
    return Whitening(matrix, means @ matrix)
