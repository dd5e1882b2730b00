"""attach: layers on any model, with nothing left behind."""

import copy
import pickle
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from styleshift.attaching import attach, features_at

StateOf = Callable[[nn.Module], object]


class Halve(nn.Module):
    """A layer that shows: what it was given, halved."""

    def forward(self, features: Tensor) -> Tensor:
        return features / 2


class Noisy(nn.Module):
    """A training layer: one more in train mode, the same tensor object in eval mode."""

    def forward(self, features: Tensor) -> Tensor:
        return features + 1 if self.training else features


class Recorder(nn.Module):
    """A layer that changes nothing and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, features: Tensor) -> Tensor:
        self.seen.append(features)
        return features


def by_hand(model: nn.Module, images: Tensor, halved_after: str) -> Tensor:
    """The small conv net, its features halved after one of its parts."""
    features = images
    for name in ("stem", "relu", "block1", "block2"):
        features = model.get_submodule(name)(features)
        features = features / 2 if name == halved_after else features
    logits: Tensor = model.get_submodule("head")(features.mean(dim=(2, 3)))
    return logits


@pytest.mark.parametrize("name", ["block1", "block1.0", "stem"])
def test_the_layer_takes_what_the_named_module_gives(conv_net: nn.Module, images: Tensor, name: str) -> None:
    recorder = Recorder()
    with attach(conv_net, {name: recorder}):
        conv_net(images)
    expected = features_at(conv_net, [name], images)[name]
    assert recorder.seen[0].shape == expected.shape


@pytest.mark.parametrize("name", ["block1", "block2"])
def test_the_network_goes_on_with_what_the_layer_gives(conv_net: nn.Module, images: Tensor, name: str) -> None:
    with attach(conv_net, {name: Halve()}):
        logits = conv_net(images)
    assert torch.equal(logits, by_hand(conv_net, images, name))


def test_several_layers_act_at_once(conv_net: nn.Module, images: Tensor) -> None:
    with attach(conv_net, {"block1": Halve(), "block2": Halve()}):
        both = conv_net(images)
    features = conv_net.block2(conv_net.block1(conv_net.relu(conv_net.stem(images))) / 2) / 2
    assert torch.equal(both, conv_net.head(features.mean(dim=(2, 3))))


def test_it_acts_from_the_call_and_until_remove(conv_net: nn.Module, images: Tensor) -> None:
    plain = conv_net(images)
    attachment = attach(conv_net, {"block1": Halve()})
    assert not torch.equal(conv_net(images), plain)
    attachment.remove()
    assert torch.equal(conv_net(images), plain)


def test_remove_twice_is_remove_once(conv_net: nn.Module, state_of: StateOf) -> None:
    attachment = attach(conv_net, {"block1": Halve()})
    attachment.remove()
    before = state_of(conv_net)
    attachment.remove()
    assert state_of(conv_net) == before


def test_detaching_leaves_every_module_as_it_was(conv_net: nn.Module, images: Tensor, state_of: StateOf) -> None:
    before = state_of(conv_net)
    with attach(conv_net, {"block1": Halve(), "block2": Noisy()}, calls="first"):
        conv_net(images)
    assert state_of(conv_net) == before


def test_an_error_inside_the_block_leaves_every_module_as_it_was(
    conv_net: nn.Module, images: Tensor, state_of: StateOf
) -> None:
    before = state_of(conv_net)
    with pytest.raises(RuntimeError, match="expected input"), attach(conv_net, {"block1": Halve()}):
        conv_net(images[:, :2])
    assert state_of(conv_net) == before


def test_an_error_inside_the_forward_does_not_confuse_the_next_one(images: Tensor, twice_net: nn.Module) -> None:
    model, recorder = twice_net, Recorder()
    with attach(model, {"block": recorder}, calls="first"):
        with pytest.raises(RuntimeError, match="expected input"):
            model(images[:, :2])
        model(images)
    assert len(recorder.seen) == 1


def test_nothing_is_attached_when_one_of_the_names_is_wrong(conv_net: nn.Module, state_of: StateOf) -> None:
    before = state_of(conv_net)
    with pytest.raises(KeyError):
        attach(conv_net, {"block1": Halve(), "block9": Halve()})
    assert state_of(conv_net) == before


@pytest.mark.parametrize("first_removed", [0, 1])
@pytest.mark.parametrize("second_name", ["block1", "block2"])
def test_two_attachments_end_in_any_order(
    conv_net: nn.Module, images: Tensor, first_removed: int, second_name: str, state_of: StateOf
) -> None:
    before = state_of(conv_net)
    expected = by_hand(conv_net, images, "block1" if first_removed == 1 else second_name)
    attachments = [attach(conv_net, {"block1": Halve()}), attach(conv_net, {second_name: Halve()})]
    attachments.pop(first_removed).remove()
    assert torch.equal(conv_net(images), expected)
    attachments.pop().remove()
    assert state_of(conv_net) == before


def test_two_attachments_at_one_layer_act_in_their_order(conv_net: nn.Module, images: Tensor) -> None:
    recorder = Recorder()
    with attach(conv_net, {"block1": Halve()}), attach(conv_net, {"block1": recorder}):
        conv_net(images)
    assert torch.equal(recorder.seen[0], features_at(conv_net, ["block1"], images)["block1"] / 2)


def test_an_attached_model_has_the_parameters_and_state_it_had(conv_net: nn.Module) -> None:
    parameters, keys = list(conv_net.parameters()), list(conv_net.state_dict())
    with attach(conv_net, {"block1": nn.Conv2d(16, 16, 1)}):
        assert list(map(id, conv_net.parameters())) == list(map(id, parameters))
        assert list(conv_net.state_dict()) == keys


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["deepcopy", "pickle"]
)
def test_a_copy_of_an_attached_model_is_a_plain_model(
    conv_net: nn.Module, images: Tensor, copied: Callable[[nn.Module], nn.Module]
) -> None:
    plain = conv_net(images)
    with attach(conv_net, {"block1": Halve()}, calls="first"):
        double = copied(conv_net)
        assert torch.equal(double(images), plain)


class Pair(nn.Module):
    """Gives its features in a tuple."""

    def forward(self, features: Tensor) -> tuple[Tensor, str]:
        return features, "extra"


def test_an_identity_layer_leaves_the_very_output_object(images: Tensor) -> None:
    pair, given = Pair(), list[object]()
    model = nn.Sequential(pair).eval()
    pair.register_forward_hook(lambda module, args, output: given.append(output))
    with attach(model, {"0": Noisy()}):
        assert model(images) is given[0]


@pytest.mark.parametrize("training", [True, False])
def test_a_layer_has_the_models_mode(conv_net: nn.Module, images: Tensor, training: bool) -> None:
    layer = nn.Sequential(Noisy(), Noisy()).train(not training)
    with attach(conv_net, {"block1": layer}):
        conv_net.train(training)
        conv_net(images)
    assert {part.training for part in layer.modules()} == {training}


def test_a_frozen_stage_does_not_silence_the_layer_behind_it(conv_net: nn.Module, images: Tensor) -> None:
    conv_net.train()
    conv_net.block1.eval()
    plain = conv_net(images)
    with attach(conv_net, {"block1": Noisy()}):
        assert not torch.equal(conv_net(images), plain)


def test_every_call_of_a_module_is_styled(images: Tensor, twice_net: nn.Module) -> None:
    model, recorder = twice_net, Recorder()
    with attach(model, {"block": recorder}):
        model(images)
        model(images)
    assert len(recorder.seen) == 4


def test_only_the_first_call_in_each_forward_is_styled_on_demand(images: Tensor, twice_net: nn.Module) -> None:
    model, recorder = twice_net, Recorder()
    with attach(model, {"block": recorder}, calls="first"):
        model(images)
        model(images)
    assert len(recorder.seen) == 2
    assert torch.equal(recorder.seen[0], model.block(images))


def test_a_part_called_by_itself_is_always_a_first_call(images: Tensor, twice_net: nn.Module) -> None:
    recorder = Recorder()
    with attach(twice_net, {"block": recorder}, calls="first"):
        twice_net(images)
        twice_net.block(images)
        twice_net.block(images)
    assert len(recorder.seen) == 3


@pytest.mark.parametrize("calls", ["every", "first"])
def test_threads_on_one_model_give_what_one_thread_gives(calls: str, images: Tensor, twice_net: nn.Module) -> None:
    model, layer = twice_net, Halve()
    batches = [images * scale for scale in range(1, 9)]
    results: dict[int, Tensor] = {}

    def run(own: range) -> None:
        for _ in range(20):
            results.update({index: model(batches[index]) for index in own})

    with attach(model, {"block": layer}, calls=calls):
        expected = [model(batch) for batch in batches]
        threads = [threading.Thread(target=run, args=(range(start, 8, 4),)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(torch.equal(results[index], expected[index]) for index in range(8))


def test_under_autocast_the_network_goes_on_in_half_precision(conv_net: nn.Module, images: Tensor) -> None:
    class Widening(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return features.float()

    given: list[Tensor] = []
    with attach(conv_net, {"block1.0": Widening()}), torch.autocast("cpu", torch.bfloat16):
        conv_net.block1[1].register_forward_pre_hook(lambda module, args: given.append(args[0]))
        conv_net(images)
    assert given[0].dtype == torch.bfloat16


def test_a_wrong_name_is_answered_with_near_ones(conv_net: nn.Module) -> None:
    with pytest.raises(KeyError, match=r"SmallConvNet has no module 'blok1'; did you mean one of \['block1'"):
        attach(conv_net, {"blok1": Halve()})


def test_a_name_like_no_other_is_answered_with_the_outer_modules(conv_net: nn.Module) -> None:
    with pytest.raises(KeyError, match=r"\['stem', 'relu', 'block1', 'block2', 'head'\]"):
        attach(conv_net, {"xyz": Halve()})


def test_no_names_are_refused(conv_net: nn.Module) -> None:
    with pytest.raises(ValueError, match="At least one module name"):
        attach(conv_net, {})


def test_a_module_without_maps_is_answered_with_those_that_have_them(conv_net: nn.Module, images: Tensor) -> None:
    with (
        attach(conv_net, {"head": Halve()}),
        pytest.raises(ValueError, match=r"module 'head' gives \[4, 5\]. Layers that can take it: block1, block2"),
    ):
        conv_net(images)


def test_a_layer_that_changes_the_shape_is_named(conv_net: nn.Module, images: Tensor) -> None:
    with (
        attach(conv_net, {"block1": nn.Flatten()}),
        pytest.raises(ValueError, match=r"Flatten at 'block1' needs .* \[4, 16, 8, 8\]; it gave \[4, 1024\]"),
    ):
        conv_net(images)
