"""features_at and places: what a model's modules give, read without running more of it than that."""

import threading
from collections import OrderedDict
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from styleshift.attaching import attach, features_at, places

StateOf = Callable[[nn.Module], object]


def test_features_are_what_the_module_gives(conv_net: nn.Module, images: Tensor) -> None:
    expected = conv_net.block1(conv_net.relu(conv_net.stem(images)))
    assert torch.equal(features_at(conv_net, ["block1"], images)["block1"], expected)


def test_features_before_an_inplace_operation_are_not_those_after_it(conv_net: nn.Module, images: Tensor) -> None:
    found = features_at(conv_net, ["stem", "block1"], images)
    assert torch.equal(found["stem"], conv_net.stem(images))


def test_features_come_in_the_order_they_were_asked_for(conv_net: nn.Module, images: Tensor) -> None:
    assert list(features_at(conv_net, ["block2", "stem"], images)) == ["block2", "stem"]


def test_what_is_deeper_than_the_deepest_name_does_not_run(conv_net: nn.Module, images: Tensor) -> None:
    ran: list[str] = []
    for name, module in conv_net.named_children():
        module.register_forward_pre_hook(lambda module, args, name=name: ran.append(name))
    features_at(conv_net, ["block1", "stem"], images)
    assert ran == ["stem", "relu", "block1"]


@pytest.mark.parametrize("names", [["block1"], ["block1", "head"]], ids=["good", "refused"])
def test_reading_features_leaves_every_module_as_it_was(
    conv_net: nn.Module, images: Tensor, names: list[str], state_of: StateOf
) -> None:
    before = state_of(conv_net)
    try:
        features_at(conv_net, names, images)
    except ValueError:
        assert "head" in names
    assert state_of(conv_net) == before


def test_features_follow_the_callers_gradient_mode(conv_net: nn.Module, images: Tensor) -> None:
    assert features_at(conv_net, ["block1"], images)["block1"].requires_grad
    with torch.no_grad():
        assert not features_at(conv_net, ["block1"], images)["block1"].requires_grad


def test_features_of_a_module_that_runs_twice_are_the_first(images: Tensor, twice_net: nn.Module) -> None:
    model = nn.Sequential(OrderedDict(net=twice_net.block, again=twice_net.block, after=nn.ReLU()))
    assert torch.equal(features_at(model, ["net", "after"], images)["net"], twice_net.block(images))


def test_reading_in_one_thread_does_not_stop_another(conv_net: nn.Module, images: Tensor) -> None:
    expected, others = conv_net(images), list[Tensor]()

    class Meanwhile(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            if threading.current_thread() is threading.main_thread():
                other = threading.Thread(target=lambda: others.append(conv_net(images)))
                other.start()
                other.join()
            return features

    with attach(conv_net, {"stem": Meanwhile()}):
        features_at(conv_net, ["block1"], images)
    assert torch.equal(others[0], expected)


def test_a_module_that_does_not_run_is_named(conv_net: nn.Module, images: Tensor) -> None:
    conv_net.spare = nn.Conv2d(3, 3, 1)
    with pytest.raises(ValueError, match=r"'spare' did not run .* Layers that can take it: block1, block2"):
        features_at(conv_net, ["spare", "block1"], images)


class Windows(nn.Module):
    """A model that cuts every image into four windows, and sees to each."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.after = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, images: Tensor) -> Tensor:
        windows = images.unflatten(3, (4, -1)).movedim(3, 1).flatten(0, 1)
        seen: Tensor = self.after(self.inside(windows).unflatten(0, (-1, 4)).movedim(1, 3).flatten(3))
        return seen


def test_samples_that_are_no_images_are_refused(images: Tensor) -> None:
    with pytest.raises(ValueError, match=r"'inside' gives 16 samples for 4 images.* Layers that can take it: after\."):
        features_at(Windows(), ["inside"], images)


def test_places_come_in_the_order_they_finish(conv_net: nn.Module, images: Tensor) -> None:
    found = places(conv_net, images)
    assert [place.name for place in found] == [
        "stem", "relu", "block1.0", "block1.1", "block1", "block2.0", "block2.1", "block2",
    ]  # fmt: skip
    assert [place.order for place in found] == list(range(8))


def test_a_place_has_its_layout_and_sizes(conv_net: nn.Module, images: Tensor) -> None:
    block = {place.name: place for place in places(conv_net, images)}["block2"]
    assert (block.layout, block.channels, block.height, block.width) == ("nchw", 24, 4, 4)


def test_a_map_of_one_place_is_no_place(images: Tensor) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    assert [place.name for place in places(model, images)] == ["0"]


def test_a_place_counts_its_calls(images: Tensor, twice_net: nn.Module) -> None:
    assert [(place.name, place.calls) for place in places(twice_net, images)] == [("block", 2)]


def test_the_last_places_are_those_behind_all_weights_but_the_heads(conv_net: nn.Module, images: Tensor) -> None:
    assert [place.name for place in places(conv_net, images) if place.last] == ["block2.0", "block2.1", "block2"]


def test_looking_for_places_changes_nothing(images: Tensor, state_of: StateOf) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3)).train()
    before, statistics = state_of(model), model[1].running_mean.clone()
    places(model, images)
    assert state_of(model) == before
    assert torch.equal(model[1].running_mean, statistics)
