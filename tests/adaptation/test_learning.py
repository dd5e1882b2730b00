"""Steps, and the way back."""

from functools import partial

import pytest
import torch
from torch import nn

from styleshift.adaptation.learning import Learner

SGD = partial(torch.optim.SGD, lr=0.5, momentum=0.9)


def learner() -> Learner:
    return Learner([nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([3.0]))], SGD)


def test_a_step_goes_down_the_gradient() -> None:
    own = learner()
    own.step((own.parameters[0] * torch.tensor([1.0, -1.0])).sum())
    assert own.parameters[0].tolist() == [0.5, 2.5]
    assert own.parameters[1].tolist() == [3.0]


def test_no_gradient_is_left_on_a_parameter() -> None:
    own = learner()
    own.step(own.parameters[0].sum())
    assert all(parameter.grad is None for parameter in own.parameters)


def test_put_back_it_takes_the_same_steps_again() -> None:
    own = learner()

    def walk() -> list[float]:
        for _ in range(3):
            own.step(own.parameters[0].square().sum())
        return own.parameters[0].tolist()

    first = walk()
    own.put_back()
    assert own.parameters[0].tolist() == [1.0, 2.0]
    assert walk() == first


def test_a_loss_that_is_no_number_moves_nothing() -> None:
    own = learner()
    with pytest.raises(ValueError, match=r"the loss is nan\. Do they, or the weights, hold NaN"):
        own.step(own.parameters[0].sum() * torch.nan)
    assert own.parameters[0].tolist() == [1.0, 2.0]


def test_a_step_under_autocast_is_seen_by_the_next_forward() -> None:
    """Autocast keeps a half-precision copy of every weight; one from before the step must not be used again."""
    layer = nn.Linear(4, 4, bias=False)
    own, inputs = Learner([layer.weight], SGD), torch.ones(1, 4)
    with torch.autocast("cpu", torch.bfloat16):
        before = layer(inputs)
        own.step(before.float().sum())
        assert not torch.equal(layer(inputs), before)
