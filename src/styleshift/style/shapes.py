"""Shapes with the paper's letters: B samples, C channels, H x W places, N source domains, P = 2C entries of Phi."""

from jaxtyping import Float, Integer
from torch import Tensor

Features = Float[Tensor, "B C H W"]
Statistic = Float[Tensor, "B C"]
Phi = Float[Tensor, "B P"]
Centres = Float[Tensor, "N P"]
Distances = Float[Tensor, "B N"]
Scores = Float[Tensor, "B"]
Labels = Integer[Tensor, "B"]
Indices = Integer[Tensor, "M"]
Strengths = Float[Tensor, "M"]
