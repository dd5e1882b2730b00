"""Parameters that learn at test time: moved by an optimiser, put back by `reset`.

Learner        steps along the gradient of a loss; remembers where it began
expect_rates   of a method's settings
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


def expect_rates(learning_rate: float, momentum: float = 0.0) -> None:
    """ValueError if no optimiser can take these."""
    for name, value in (("learning_rate", learning_rate), ("momentum", momentum)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is a number of at least 0; got {value}")


class Learner:
    """Some parameters and what moves them.

    make: gives the optimiser, of a list of parameters.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], make: Callable[[list[nn.Parameter]], Optimizer]) -> None:
        self.parameters = list(parameters)
        self.first = [parameter.detach().clone() for parameter in parameters]
        self._make = make
        self.optimizer = make(self.parameters)

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        """Of `loss`, by the parameters; zeros for one that it does not depend on."""
        if not loss.isfinite():
            raise ValueError(
                f"nothing can be learned from these images: the loss is {loss.item()}. Do they, or the weights, hold "
                "NaN or infinity? What was learned before is kept"
            )
        return torch.autograd.grad(loss, self.parameters, allow_unused=True, materialize_grads=True)

    def step(self, loss: Tensor) -> None:
        """One step down `loss`."""
        self.move(self.gradients(loss))

    def move(self, gradients: Sequence[Tensor]) -> None:
        """One step of the optimiser along these gradients."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        # under autocast, half-precision copies of the weights as they were before this step are kept
        torch.clear_autocast_cache()

    @torch.no_grad()
    def put_back(self) -> None:
        """The parameters where they began; the optimiser has taken no step."""
        for parameter, first in zip(self.parameters, self.first, strict=True):
            parameter.copy_(first)
        self.optimizer = self._make(self.parameters)
        torch.clear_autocast_cache()
