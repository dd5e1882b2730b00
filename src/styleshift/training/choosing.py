"""Which epoch's model is kept: the last one, or the best on the sources' validation images.

Target labels cannot take part: what is asked here is told of validation accuracy and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

Choose = Literal["last", "best-validation"]


@dataclass
class Chosen:
    """The best model so far, by the sources' validation accuracy.

    Of equal ones the earliest is kept. epoch counts from 1; 0 before the first.
    """

    epoch: int = 0
    accuracy: float = -1.0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def consider(self, epoch: int, accuracy: float, weights: Mapping[str, Tensor]) -> None:
        """Keep a copy of these weights if they are better than what is kept."""
        if accuracy > self.accuracy:
            self.epoch, self.accuracy = epoch, accuracy
            self.weights = {name: tensor.detach().clone() for name, tensor in weights.items()}

    def plain(self) -> dict[str, Any]:
        """As a tree for a checkpoint; `Chosen(**tree)` reads it back."""
        return {"epoch": self.epoch, "accuracy": self.accuracy, "weights": dict(self.weights)}
