"""What holds for every layer of `styleshift.layers`: found, not listed."""

import copy
import importlib
import inspect
import json
import math
import pickle
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from styleshift import layers, named
from styleshift.style.statistics import Style

NAMES = named.names(layers)
ARGUMENTS = {name: inspect.signature(named.find(layers, name)).parameters for name in NAMES}
# a layer that can be told when it is active acts at test time; every other one in training
AT_TEST_TIME = [name for name in NAMES if "active" in ARGUMENTS[name]]
IN_TRAINING = [name for name in NAMES if name not in AT_TEST_TIME]

FEATURES = torch.randn(7, 3, 5, 4, generator=torch.Generator().manual_seed(0)) + torch.arange(7.0)[:, None, None, None]
FAR_SOURCES = Style(torch.tensor([[50.0], [51.0]]).expand(2, 3), torch.tensor([[2.0], [2.5]]).expand(2, 3))
EDGES = {
    "no sample": FEATURES[:0],
    "one sample": FEATURES[:1],
    "equal samples": FEATURES[:1].repeat(6, 1, 1, 1),
    "one place": FEATURES[:, :, :1, :1],
    "one row": FEATURES[:, :, :1],
    "constant channels": FEATURES[:, :, :1, :1].repeat(1, 1, 5, 4),
    "zeros": torch.zeros(7, 3, 5, 4),
}


def taking(argument: str) -> list[str]:
    return [name for name in NAMES if argument in ARGUMENTS[name]]


def built(name: str, **settings: Any) -> nn.Module:
    """The layer, acting at every forward: what its arguments may be called, and what each then gets."""
    offered = {"p": 1.0, "generator": torch.Generator().manual_seed(0), "sources": FAR_SOURCES, **settings}
    layer: nn.Module = named.build(layers, name, **{key: offered[key] for key in offered if key in ARGUMENTS[name]})
    return layer.train(name in IN_TRAINING)


def applied(layer: Callable[[Tensor], Tensor], features: Tensor, given: Any = None) -> Tensor:
    """What the layer gives; it is told labels, most of one domain, where it asks for them (`given`)."""
    samples = torch.arange(len(features))
    tell = given or getattr(layer, "given", None)
    with tell(samples * 0, (samples > 4).long()) if tell else nullcontext():
        return layer(features)


def test_every_file_holds_a_layer() -> None:
    assert {path.stem for path in Path(layers.__path__[0]).glob("[!_]*.py")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_its_file_has_one_public_module_and_that_is_it(name: str) -> None:
    file = importlib.import_module(f"{layers.__name__}.{name}")
    public = [
        thing
        for word, thing in vars(file).items()
        if inspect.isclass(thing) and thing.__module__ == file.__name__ and not word.startswith("_")
    ]
    assert public == [named.find(layers, name)]
    assert issubclass(public[0], nn.Module)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is_and_what_each_argument_means(name: str) -> None:
    said = inspect.getdoc(named.find(layers, name)) or ""
    assert re.match(r"[A-Z][^\n]+\.", said)
    for argument in ARGUMENTS[name]:
        assert re.search(rf"^{argument}: \S", said, flags=re.MULTILINE), f"nothing about {argument}"


@pytest.mark.parametrize("name", NAMES)
def test_where_it_acts_every_map_keeps_its_shape_and_some_change(name: str) -> None:
    styled = applied(built(name), FEATURES)
    assert styled.shape == FEATURES.shape
    assert (styled - FEATURES).abs().max() > 0.1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_keeps_dtype_and_memory_format(name: str, dtype: torch.dtype, layout: torch.memory_format) -> None:
    styled = applied(built(name), FEATURES.to(dtype).contiguous(memory_format=layout))
    assert styled.dtype == dtype
    assert styled.is_contiguous(memory_format=layout)


@pytest.mark.parametrize("name", NAMES)
def test_the_memory_format_changes_no_values(name: str) -> None:
    lying = FEATURES.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(applied(built(name), lying), applied(built(name), FEATURES), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_features_are_those_of_single_precision_rounded(name: str, dtype: torch.dtype) -> None:
    halves, rounding = FEATURES.to(dtype), 4 * torch.finfo(dtype).eps
    expected = applied(built(name), halves.float()).to(dtype)
    torch.testing.assert_close(applied(built(name), halves), expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", IN_TRAINING)
def test_what_acts_in_training_gives_the_very_same_tensor_in_eval_mode(name: str) -> None:
    assert built(name).eval()(FEATURES) is FEATURES


@pytest.mark.parametrize("name", AT_TEST_TIME)
def test_what_acts_at_test_time_gives_the_very_same_tensor_in_training_mode(name: str) -> None:
    assert built(name).train()(FEATURES) is FEATURES


@pytest.mark.parametrize("name", NAMES)
def test_the_features_it_was_given_stay_as_they_were(name: str) -> None:
    features = FEATURES.clone()
    applied(built(name), features)
    assert torch.equal(features, FEATURES)


@pytest.mark.parametrize("name", NAMES)
def test_equal_generators_give_equal_features(name: str) -> None:
    once, again = built(name), built(name)
    for _ in range(3):
        assert torch.equal(applied(once, FEATURES), applied(again, FEATURES))


@pytest.mark.parametrize("name", taking("generator"))
def test_what_draws_gives_other_features_from_time_to_time(name: str) -> None:
    layer = built(name)
    first = applied(layer, FEATURES)
    assert not all(torch.equal(applied(layer, FEATURES), first) for _ in range(10))


@pytest.mark.parametrize("name", NAMES)
def test_the_global_generator_is_left_alone(name: str) -> None:
    before = torch.get_rng_state()
    applied(built(name), FEATURES)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", taking("generator"))
def test_without_a_generator_it_draws_from_the_global_one(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        once = applied(built(name, generator=None), FEATURES)
        torch.manual_seed(1)
        assert torch.equal(applied(built(name, generator=None), FEATURES), once)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("correction", [0, 1])
def test_the_smallest_and_dullest_maps_stay_finite_and_so_do_their_gradients(
    name: str, kind: str, correction: int
) -> None:
    features = EDGES[kind].clone().requires_grad_()
    styled = applied(built(name, correction=correction), features)
    styled.sum().backward()
    assert styled.shape == features.shape
    assert styled.isfinite().all()
    assert features.grad is not None
    assert features.grad.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_reaches_every_sample(name: str) -> None:
    features = FEATURES.clone().requires_grad_()
    # not a plain sum: a style that is held constant leaves that no gradient
    (applied(built(name), features) * FEATURES.flip(3)).sum().backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()
    assert (features.grad.abs().flatten(1).amax(dim=1) > 1e-3).all()


@pytest.mark.parametrize("name", NAMES)
def test_it_has_nothing_to_learn(name: str) -> None:
    assert list(built(name).parameters()) == []


@pytest.mark.parametrize("name", IN_TRAINING)
def test_what_acts_in_training_has_no_state_in_a_models_weights(name: str) -> None:
    assert built(name).state_dict() == {}


@pytest.mark.parametrize("name", AT_TEST_TIME)
def test_what_acts_at_test_time_is_all_in_its_state(name: str) -> None:
    elsewhere = built(name, sources=Style(-FAR_SOURCES.mean, FAR_SOURCES.std))
    elsewhere.load_state_dict(built(name).state_dict())
    assert torch.equal(applied(elsewhere, FEATURES), applied(built(name), FEATURES))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_goes_on_as_the_original(name: str, copied: Callable[[nn.Module], nn.Module]) -> None:
    layer = built(name)
    applied(layer, FEATURES)
    twin = copied(layer)
    assert torch.equal(applied(twin, FEATURES), applied(layer, FEATURES))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_changes_nothing(name: str, dtype: torch.dtype) -> None:
    features = FEATURES.to(dtype)
    expected = applied(built(name), features)
    with torch.autocast("cpu", torch.bfloat16):
        styled = applied(built(name), features)
    assert styled.dtype == dtype
    assert torch.equal(styled, expected)


@pytest.mark.parametrize("name", taking("p"))
def test_with_p_0_it_gives_the_very_same_tensor(name: str) -> None:
    layer = built(name, p=0.0)
    assert all(applied(layer, FEATURES) is FEATURES for _ in range(50))


@pytest.mark.parametrize("name", taking("p"))
@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_a_p_that_is_no_probability_is_refused_with_what_came(name: str, p: float) -> None:
    with pytest.raises(ValueError, match=rf"in \[0, 1\]; got {p}"):
        built(name, p=p)


@pytest.mark.parametrize("name", taking("alpha"))
@pytest.mark.parametrize("alpha", [-0.1, math.nan])
def test_an_alpha_below_0_is_refused_with_what_came(name: str, alpha: float) -> None:
    with pytest.raises(ValueError, match=f"alpha.*got.* {alpha}"):
        built(name, alpha=alpha)


def test_a_word_there_is_not_is_refused_with_those_there_are(plain_python: Callable[[str], str]) -> None:
    printed = plain_python(f"""
import json, runpy
from typing import Literal, get_args, get_origin, get_type_hints

contract, said = runpy.run_path({__file__!r}), []
for name in contract["NAMES"]:
    hints = get_type_hints(contract["named"].find(contract["layers"], name).__init__)
    for argument, hint in hints.items():
        if get_origin(hint) is Literal:
            try:
                contract["built"](name, **{{argument: "nonsense"}})
            except ValueError as error:
                message = str(error)
            else:
                message = "taken without a word"
            said.append([f"{{name}}({{argument}})", [argument, *map(repr, get_args(hint)), "got 'nonsense'"], message])
print(json.dumps(said))
""")
    refusals = json.loads(printed)
    assert len(refusals) >= 3
    wanting = {call: message for call, needed, message in refusals if any(word not in message for word in needed)}
    assert not wanting


def test_compiled_it_does_the_same_forward_after_forward(plain_python: Callable[[str], str]) -> None:
    plain_python(f"""
import runpy, torch

contract = runpy.run_path({__file__!r})
built, applied, FEATURES = (contract[word] for word in ("built", "applied", "FEATURES"))

def same(found, expected, name):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, msg=lambda told: f"{{name}}: {{told}}")

for name in contract["NAMES"]:
    torch._dynamo.reset()
    plain, traced = built(name, p=0.7), built(name, p=0.7)
    compiled = torch.compile(traced, backend="aot_eager")
    for forward in range(2):
        features, copies = (FEATURES.clone().requires_grad_() for _ in range(2))
        expected, styled = applied(plain, features), applied(compiled, copies, getattr(traced, "given", None))
        same(styled, expected, name)
        (expected * FEATURES.flip(3)).sum().backward()
        (styled * FEATURES.flip(3)).sum().backward()
        same(copies.grad, features.grad, "the gradient of " + name)
    idle = traced.train(not traced.training)
    same(torch.compile(idle, backend="aot_eager", fullgraph=True)(FEATURES), FEATURES, "idle " + name)
""")
