"""SAR: what learns, from where the gradient is taken, and recovery."""

import math
from collections.abc import Callable

import pytest
import torch
from tests.adaptation.conftest import TinyNet, World
from torch import Tensor, nn

from styleshift.adaptation.sar import SAR, at_worst_point


def literal_step(net: TinyNet, images: Tensor, method: SAR) -> tuple[Tensor, Tensor]:
    """Scale and shift after one batch, each line of the pseudo-code a line of torch on plain tensors."""
    weight, bias = (part.detach().clone().requires_grad_() for part in (net.norm.weight, net.norm.bias))

    def uncertain(scale: Tensor, shift: Tensor) -> Tensor:
        mean, variance = images.mean(dim=(0, 2, 3)), images.var(dim=(0, 2, 3), correction=0)
        plain = (images - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
        features = (plain * scale[:, None, None] + shift[:, None, None]).mean(dim=(2, 3))
        logs = (features @ net.head.weight.detach().T + net.head.bias.detach()).log_softmax(dim=1)
        return -(logs.exp() * logs).sum(dim=1)

    margin = method.margin * math.log(3)
    entropies = uncertain(weight, bias)
    sure = entropies < margin
    up = torch.autograd.grad(entropies[sure].mean(), [weight, bias])
    length = math.sqrt(sum(float(part.square().sum()) for part in up))
    worst = [(part + method.rho / length * slope) for part, slope in zip((weight, bias), up, strict=True)]
    again = uncertain(*worst)[sure]
    down = torch.autograd.grad(again[again < margin].mean(), [weight, bias])
    return weight - method.learning_rate * down[0], bias - method.learning_rate * down[1]


@pytest.mark.parametrize("margin", [0.7, 0.9, 2.0])
def test_its_first_step_is_the_pseudo_code(margin: float, tiny: TinyNet, stream: list[Tensor]) -> None:
    method = SAR(learning_rate=0.3, margin=margin, recovery=0.0, skip=())
    sar = method.wrap(tiny)
    sar(stream[2])
    weight, bias = literal_step(tiny, stream[2], method)
    torch.testing.assert_close(sar.get_parameter("body.norm.weight"), weight, rtol=1e-7, atol=1e-9, check_stride=False)
    torch.testing.assert_close(sar.get_parameter("body.norm.bias"), bias, rtol=1e-7, atol=1e-9)


def test_what_is_skipped_is_a_tuple_of_names(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
from styleshift.adaptation.sar import SAR
for skip in ("layer3", ["layer3"], (3,)):
    try:
        SAR(skip=skip)
    except ValueError as refusal:
        print(refusal)
""")
    assert [line.rpartition("; ")[2] for line in said.splitlines()] == ["got 'layer3'", "got ['layer3']", "got (3,)"]


def test_where_no_sample_is_sure_nothing_is_learned(tiny: TinyNet, stream: list[Tensor]) -> None:
    sar = SAR(learning_rate=9.0, margin=1e-9, skip=()).wrap(tiny)
    sar(stream[0])
    assert torch.equal(sar.get_parameter("body.norm.weight"), tiny.norm.weight)


def test_a_loss_that_falls_low_brings_the_first_weights_back(tiny: TinyNet, stream: list[Tensor]) -> None:
    never, always = (SAR(0.3, margin=2.0, recovery=r, skip=()).wrap(tiny) for r in (0.0, 99.0))
    for adapted in (never, always):
        adapted(stream[0])
    assert not torch.equal(never.get_parameter("body.norm.weight"), tiny.norm.weight)
    assert torch.equal(always.get_parameter("body.norm.weight"), tiny.norm.weight)
    assert always.average is None


def test_the_average_moves_by_a_tenth(tiny: TinyNet, stream: list[Tensor]) -> None:
    sar = SAR(0.0, margin=2.0, rho=0.0, recovery=0.0, skip=()).wrap(tiny)
    losses = []
    for images in (stream[0], stream[2]):
        logs = sar(images).log_softmax(dim=1)
        losses.append(float(-(logs.exp() * logs).sum(dim=1).mean()))
    assert sar.average == pytest.approx(0.9 * losses[0] + 0.1 * losses[1])


def test_the_last_stage_does_not_learn(world: World) -> None:
    sar = SAR(1.0, margin=2.0, recovery=0.0, skip=("layer3",)).wrap(world.model)
    sar(world.images)
    for name, learns in (("layer2.1.weight", True), ("layer3.1.weight", False)):
        assert sar.body.get_parameter(name).requires_grad is learns
    assert torch.equal(sar.body.get_parameter("layer3.1.weight"), world.model.get_parameter("layer3.1.weight"))
    # it uses the batch's statistics all the same
    assert sar.body.get_submodule("layer3.1").running_mean is None


def test_parameters_return_bit_by_bit_from_the_worst_point() -> None:
    parameter = nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))
    before = parameter.detach().clone()
    with at_worst_point([parameter], (torch.tensor([0.0, 3.0, 4.0]),), 0.5):
        torch.testing.assert_close(parameter.detach(), torch.tensor([0.1, 0.5, 0.7]))
    assert torch.equal(parameter, before)


def test_without_a_gradient_the_worst_point_is_here() -> None:
    parameter = nn.Parameter(torch.ones(2))
    with at_worst_point([parameter], (torch.zeros(2),), 0.5):
        assert torch.equal(parameter, torch.ones(2))
