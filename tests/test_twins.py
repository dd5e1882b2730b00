"""twin: a second body over the same weights."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

from styleshift.attaching import attach
from styleshift.twins import Inert, expect_open, twin


class PlainList(nn.Module):
    """Keeps its convolutions where nn.Module does not look, and calls one through a bound method."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = [nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)]
        self.last = partial(self.through, scale=2.0)
        self.first = self.convs[0].forward

    def through(self, features: Tensor, scale: float) -> Tensor:
        result: Tensor = self.convs[1](features) * scale
        return result

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.first(images))


def test_it_gives_what_the_model_gives(conv_net: nn.Module, images: Tensor) -> None:
    assert torch.equal(twin(conv_net)(images), conv_net(images))


def test_it_holds_the_very_same_parameters_and_buffers() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    double = twin(model)
    assert [id(tensor) for tensor in double.parameters()] == [id(tensor) for tensor in model.parameters()]
    assert [id(tensor) for tensor in double.buffers()] == [id(tensor) for tensor in model.buffers()]


def load_other_weights(model: nn.Module) -> None:
    model.load_state_dict({key: tensor + 1 for key, tensor in model.state_dict().items()})


def assign_other_weights(model: nn.Module) -> None:
    model.load_state_dict({key: tensor + 1 for key, tensor in model.state_dict().items()}, assign=True)


def one_optimiser_step(model: nn.Module) -> None:
    model(torch.ones(2, 3, 4, 4)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


@pytest.mark.parametrize(
    "changed",
    [load_other_weights, assign_other_weights, one_optimiser_step, lambda model: model.double()],
    ids=["load_state_dict", "assign", "step", "to(dtype)"],
)
def test_it_sees_what_happens_to_the_models_weights(changed: Callable[[nn.Module], object]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1)).eval()
    double = twin(model)
    changed(model)
    images = torch.ones(2, 3, 4, 4, dtype=model[0].weight.dtype)
    assert torch.equal(double(images), model(images))


def test_the_model_sees_what_happens_to_the_twins_weights(conv_net: nn.Module) -> None:
    twin(conv_net).double()
    assert conv_net.stem.weight.dtype == torch.float64


def test_batch_statistics_learned_by_the_model_are_the_twins() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3))
    double = twin(model).eval()
    model.train()(torch.full((2, 3, 4, 4), 5.0))
    assert torch.allclose(double[0].running_mean, torch.full((3,), 0.5))


def test_its_mode_is_its_own(conv_net: nn.Module) -> None:
    double = twin(conv_net.train()).eval()
    assert conv_net.block1[0].training
    assert not double.block1[0].training


def test_its_hooks_are_its_own(conv_net: nn.Module, images: Tensor) -> None:
    plain, double = conv_net(images), twin(conv_net)
    double.block1.register_forward_hook(lambda module, args, output: output * 0)
    assert torch.equal(conv_net(images), plain)
    assert not torch.equal(double(images), plain)


def test_the_models_own_hooks_go_along(conv_net: nn.Module, images: Tensor) -> None:
    conv_net.block1.register_forward_hook(lambda module, args, output: output * 0)
    assert torch.equal(twin(conv_net)(images), conv_net(images))


def test_our_hooks_do_not_go_along_and_leave_nothing(conv_net: nn.Module, images: Tensor) -> None:
    plain = conv_net(images)
    with attach(conv_net, {"block1": nn.Tanh()}):
        double = twin(conv_net)
    assert torch.equal(double(images), plain)
    registers = [register for part in double.modules() for name, register in vars(part).items() if "_hooks" in name]
    assert not any(registers)


def test_modules_in_plain_lists_and_behind_bound_methods_are_shared_too(images: Tensor) -> None:
    model = PlainList()
    double = twin(model)
    with torch.no_grad():
        model.convs[0].weight.zero_()
        model.convs[1].weight.mul_(2)
    assert torch.equal(double(images), model(images))


def test_modules_in_plain_lists_are_the_twins_own_bodies(images: Tensor) -> None:
    model = PlainList()
    plain, double = model(images), twin(model)
    double.convs[1].register_forward_hook(lambda module, args, output: output * 0)
    assert torch.equal(model(images), plain)
    assert not double(images).any()


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")
@pytest.mark.parametrize("normed", [weight_norm, parametrizations.weight_norm], ids=["hook", "parametrization"])
def test_normed_weights_are_shared_too(images: Tensor, normed: Callable[[nn.Module], nn.Module]) -> None:
    model = nn.Sequential(normed(nn.Conv2d(3, 4, 1)))
    model(images)
    double = twin(model)
    one_optimiser_step(model)
    assert torch.equal(double(images), model(images))


def test_shared_modules_stay_one_module(images: Tensor) -> None:
    block = nn.Conv2d(3, 3, 1)
    double = twin(nn.Sequential(block, block))
    assert double[0] is double[1]


def test_a_twin_of_a_twin_shares_the_first_ones_weights(conv_net: nn.Module) -> None:
    assert twin(twin(conv_net)).stem.weight is conv_net.stem.weight


def test_making_one_leaves_the_model_as_it_was(conv_net: nn.Module) -> None:
    before = [vars(part).copy() for part in conv_net.modules()]
    twin(conv_net)
    assert [vars(part) for part in conv_net.modules()] == before


def test_what_cannot_be_copied_is_named(conv_net: nn.Module) -> None:
    conv_net.lock = threading.Lock()
    with pytest.raises(TypeError, match=r"SmallConvNet has to be copied.*cannot pickle '_thread.lock'"):
        twin(conv_net)


@pytest.mark.parametrize(
    ("closed", "advice"),
    [
        (lambda: torch.jit.trace(nn.Conv2d(3, 3, 1), torch.ones(1, 3, 2, 2)), "give the Python model"),
        (lambda: nn.DataParallel(nn.Conv2d(3, 3, 1)), r"\.module"),
    ],
    ids=["scripted", "data parallel"],
)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.nn.DataParallel:FutureWarning")
def test_a_model_that_python_does_not_run_is_refused(closed: Callable[[], nn.Module], advice: str) -> None:
    with pytest.raises(TypeError, match=rf"the module '1' of this Sequential.*{advice}"):
        expect_open(nn.Sequential(nn.ReLU(), closed()))


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"needs to be an nn\.Module; got list"):
        expect_open([])


def test_an_inert_hook_does_nothing() -> None:
    assert Inert()(nn.ReLU(), (torch.ones(1),), torch.ones(1)) is None
