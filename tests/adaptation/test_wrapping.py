"""The body that a method works on, and what is asked of a model."""

import copy

import pytest
import torch
from tests.adaptation.conftest import TinyNet
from torch import Tensor, nn

from styleshift.adaptation.wrapping import Adapted, Sees, body_of, own_parameter


def test_a_body_shares_memory_and_nothing_else(tiny: TinyNet) -> None:
    body = body_of(tiny.train())
    for own, theirs in zip(body.parameters(), tiny.parameters(), strict=True):
        assert own is not theirs
        assert own.data_ptr() == theirs.data_ptr()
        assert theirs.requires_grad
        assert not own.requires_grad
    assert tiny.training
    assert not any(module.training for module in body.modules())


def test_weights_loaded_into_the_model_reach_its_body(tiny: TinyNet) -> None:
    body = body_of(tiny)
    with torch.no_grad():
        tiny.head.bias.fill_(7.0)
    assert (body.get_parameter("head.bias") == 7).all()


def test_a_buffer_put_in_place_in_the_body_stays_there(tiny: TinyNet) -> None:
    norm = body_of(tiny).get_submodule("norm")
    norm.running_mean = torch.ones(2)
    assert not torch.equal(tiny.get_buffer("norm.running_mean"), torch.ones(2).double())


def test_a_parameter_that_two_modules_share_stays_shared() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    body = body_of(net)
    assert body.get_parameter("0.weight") is body.get_parameter("1.weight")


def test_an_own_parameter_lies_in_other_memory_and_learns(tiny: TinyNet) -> None:
    body = body_of(tiny)
    own = own_parameter(body.get_submodule("norm"), "weight")
    assert own.requires_grad
    assert body.get_parameter("norm.weight") is own
    assert own.data_ptr() != tiny.get_parameter("norm.weight").data_ptr()


def test_it_has_one_mode(tiny: TinyNet) -> None:
    adapted = Adapted(body_of(tiny), Sees()).train()
    assert not adapted.training
    assert not adapted.body.training
    assert not copy.deepcopy(adapted).train().body.training


class Pair(nn.Module):
    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return images, images


@pytest.mark.parametrize(("model", "given"), [(Pair(), "tuple"), (nn.Identity(), r"\[2, 2, 3, 3\]")])
def test_a_model_that_gives_no_rows_of_logits_is_refused(model: nn.Module, given: str) -> None:
    with pytest.raises(ValueError, match=f"gives logits \\[B, K\\]; this one gives {given}"):
        Adapted(model, Sees())(torch.zeros(2, 2, 3, 3))
