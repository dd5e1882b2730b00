"""Our ResNets: torchvision's keys, sizes and initialisation."""

import pytest
import torch
from torch import nn

from styleshift.attaching import places
from styleshift.backbones.resnet import ResNet


@pytest.fixture(scope="module")
def resnet18() -> ResNet:
    return ResNet("18", classes=7).eval()


@pytest.mark.parametrize(("variant", "count"), [("18", 11_689_512), ("50", 25_557_032)])
def test_it_has_as_many_parameters_as_published(variant: str, count: int) -> None:
    with torch.device("meta"):
        model = ResNet(variant)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


@pytest.mark.parametrize(
    ("variant", "key"), [("18", "layer4.1.bn2.running_var"), ("50", "layer2.0.downsample.1.weight")]
)
def test_its_keys_are_torchvisions(variant: str, key: str) -> None:
    with torch.device("meta"):
        assert key in ResNet(variant).state_dict()


def test_it_gives_one_logit_a_class(resnet18: ResNet) -> None:
    assert resnet18(torch.zeros(2, 3, 32, 32)).shape == (2, 7)


def test_its_stages_halve_the_map_and_double_the_channels(resnet18: ResNet) -> None:
    found = {place.name: place for place in places(resnet18, torch.zeros(1, 3, 64, 64))}
    sizes = [(found[f"layer{stage}"].channels, found[f"layer{stage}"].height) for stage in (1, 2, 3, 4)]
    assert sizes == [(64, 16), (128, 8), (256, 4), (512, 2)]


def test_every_point_it_names_can_take_a_layer(resnet18: ResNet) -> None:
    found = {place.name for place in places(resnet18, torch.zeros(1, 3, 64, 64))}
    assert {resnet18.shift_at, *(point for points in resnet18.points.values() for point in points)} <= found


def test_its_convolutions_start_with_variance_two_over_fan_out(resnet18: ResNet) -> None:
    weight = resnet18.layer4[1].conv2.weight
    assert weight.var().item() == pytest.approx(2 / (512 * 9), rel=0.02)


def test_its_head_starts_within_one_over_root_of_its_inputs(resnet18: ResNet) -> None:
    assert resnet18.fc.weight.abs().max().item() == pytest.approx(512**-0.5, rel=0.01)


def test_a_seed_gives_the_same_start_twice() -> None:
    states = []
    for _ in range(2):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            states.append(ResNet("18", classes=2).fc.weight)
    assert torch.equal(*states)


def test_channels_last_gives_the_same_logits(resnet18: ResNet) -> None:
    images = torch.randn(2, 3, 32, 32)
    expected = resnet18(images)
    assert torch.allclose(resnet18(images.contiguous(memory_format=torch.channels_last)), expected, atol=1e-5)


def test_gradients_reach_the_first_convolution(resnet18: ResNet) -> None:
    nn.functional.cross_entropy(resnet18(torch.randn(2, 3, 32, 32)), torch.tensor([0, 1])).backward()
    assert resnet18.conv1.weight.grad is not None
    assert resnet18.conv1.weight.grad.abs().sum() > 0
    resnet18.zero_grad()


def test_a_variant_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="one of 18, 50; got '34'"):
        ResNet("34")
