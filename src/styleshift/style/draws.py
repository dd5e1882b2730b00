"""Chance, drawn on the CPU from one explicit generator, so that a run can be repeated and resumed."""

import torch
from jaxtyping import Float, Integer
from torch import Tensor


class Draws:
    """The draws that the style layers make.

    generator: where the numbers come from; None is torch's own global generator.
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self.generator = generator

    def coin(self, p: float) -> bool:
        """True with probability p."""
        return float(torch.rand((), generator=self.generator)) < p

    def beta(self, alpha: float, count: int) -> Float[Tensor, "count"]:
        """`count` draws of Beta(alpha, alpha)."""
        # float64: Gamma(0.1) reaches below float32's smallest number, and 0 / 0 is no draw
        shape = torch.full((count, 2), alpha, dtype=torch.float64)
        gamma = torch._standard_gamma(shape, generator=self.generator)
        return (gamma[:, 0] / gamma.sum(dim=1)).float()

    def permutation(self, count: int) -> Integer[Tensor, "count"]:
        """The numbers 0 .. count - 1 in random order."""
        return torch.randperm(count, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.generator)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers from [0, 1)."""
        return torch.rand(shape, generator=self.generator)
