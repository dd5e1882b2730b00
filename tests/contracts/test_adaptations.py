"""What holds for every file of `styleshift.adaptation`: found, not listed; alone and around a model that shifts."""

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from styleshift import adaptation, named
from styleshift.adaptation.wrapping import Adapted, Method, Sees
from styleshift.backbones.building import network
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles, sources_of

NAMES = named.names(adaptation)
FAST: dict[str, dict[str, Any]] = {"memo": {"views": 4}}  # settings that only make a method quicker
# large enough steps that a difference shows, and margins through which something passes
EAGER: dict[str, dict[str, Any]] = {
    "tent": {"learning_rate": 0.1},
    "memo": {"views": 4, "learning_rate": 1.0},
    "eata": {"learning_rate": 1.0, "margin": 2.0, "similarity": 1.1},
    "sar": {"learning_rate": 1.0, "margin": 2.0, "recovery": 0.0},
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """One thread, and the number before afterwards: so small a network is slower on more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = network("smallnet", 4)
        for _ in range(3):
            made(torch.randn(16, 3, 16, 16))
    return made.eval()


@pytest.fixture(scope="module")
def styles(model: nn.Module) -> SourceStyles:
    domains = torch.arange(12) % 3
    drawn = torch.randn(12, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    return sources_of(model, [(drawn * (0.5 + 0.5 * domains)[:, None, None, None], domains)], "layer2")


def images(seed: int, count: int = 6) -> Tensor:
    scale = torch.linspace(0.5, 4, count)[:, None, None, None]
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(seed)) * scale + 1


def wrapped(name: str, model: nn.Module, styles: SourceStyles, settings: dict[str, Any] | None = None) -> Adapted:
    method = named.build(adaptation, name, **(FAST.get(name, {}) if settings is None else settings))
    adapted = method.wrap(model, styles=styles if method.sees.source_styles else None)
    assert isinstance(adapted, Adapted)
    return adapted


def eager(name: str, model: nn.Module, styles: SourceStyles) -> Adapted:
    return wrapped(name, model, styles, EAGER.get(name, {}))


def tensors_of(model: nn.Module) -> Iterator[Tensor]:
    yield from model.parameters()
    yield from model.buffers()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_frozen_dataclass_whose_fields_have_defaults(name: str) -> None:
    method = named.find(adaptation, name)
    assert is_dataclass(method)
    assert method.__dataclass_params__.frozen
    assert isinstance(method(), Method)
    assert named.build(adaptation, name, **{field.name: field.default for field in fields(method)}) == method()


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is_and_what_each_setting_means(name: str) -> None:
    method = named.find(adaptation, name)
    said = inspect.getdoc(method) or ""
    assert re.match(r"[A-Z][^\n]+\.", said)
    for field in fields(method):
        assert re.search(rf"\b{field.name}(, \w+)*: \S", said), f"nothing about {field.name}"


@pytest.mark.parametrize("name", NAMES)
def test_what_it_sees_is_told_in_plain_fields(name: str) -> None:
    sees = named.find(adaptation, name).sees
    assert isinstance(sees, Sees)
    assert all(isinstance(value, bool) for value in vars(sees).values())


@pytest.mark.parametrize("name", NAMES)
def test_it_cannot_be_given_labels(name: str) -> None:
    method = named.find(adaptation, name)
    assert list(inspect.signature(method.wrap).parameters) == ["self", "model", "styles", "images"]
    assert list(inspect.signature(Adapted.forward).parameters) == ["self", "images"]


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_a_row_of_finite_logits_an_image(name: str, model: nn.Module, styles: SourceStyles) -> None:
    logits = wrapped(name, model, styles)(images(0))
    assert logits.shape == (6, 4)
    assert logits.isfinite().all()
    assert not logits.requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_it_changes_some_answer(name: str, model: nn.Module, styles: SourceStyles) -> None:
    assert (eager(name, model, styles)(images(0)) - model(images(0))).abs().max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_one_image_is_enough(name: str, model: nn.Module, styles: SourceStyles) -> None:
    logits = wrapped(name, model, styles)(images(0)[:1])
    assert logits.shape == (1, 4)
    assert logits.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shifting", [False, True])
def test_reset_gives_the_same_answers_bit_by_bit(
    name: str, shifting: bool, model: nn.Module, styles: SourceStyles
) -> None:
    if shifting and named.find(adaptation, name).sees.source_styles:
        pytest.skip("it shifts by itself")
    adapted = eager(name, ShiftedModel(model, styles, alpha=0.0) if shifting else model, styles)
    first = [adapted(images(seed)) for seed in range(3)]
    adapted.reset()
    assert all(torch.equal(adapted(images(seed)), before) for seed, before in enumerate(first))


@pytest.mark.parametrize("name", NAMES)
def test_two_wrapped_copies_do_not_influence_each_other(name: str, model: nn.Module, styles: SourceStyles) -> None:
    expected = eager(name, model, styles)(images(1))
    one, other = eager(name, model, styles), eager(name, model, styles)
    for seed in range(2, 5):
        one(images(seed))
    assert torch.equal(other(images(1)), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shifting", [False, True])
def test_a_deep_copy_goes_on_by_itself(name: str, shifting: bool, model: nn.Module, styles: SourceStyles) -> None:
    if shifting and named.find(adaptation, name).sees.source_styles:
        pytest.skip("it shifts by itself")
    adapted = eager(name, ShiftedModel(model, styles, alpha=0.0) if shifting else model, styles)
    adapted(images(0))
    twin = copy.deepcopy(adapted)
    expected = [adapted(images(seed)) for seed in (1, 2)]
    assert all(torch.equal(twin(images(seed)), before) for seed, before in zip((1, 2), expected, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_users_model_stays_as_it_was(
    name: str, model: nn.Module, styles: SourceStyles, state_of: Callable[[nn.Module], object]
) -> None:
    own = copy.deepcopy(model).train()
    own.get_submodule("layer1").eval()
    own.get_parameter("fc.weight").requires_grad_(False)
    before, values = repr(state_of(own)), [tensor.clone() for tensor in tensors_of(own)]
    adapted = eager(name, own, styles)
    for seed in range(3):
        adapted(images(seed))
    adapted.train()
    adapted.reset()
    assert repr(state_of(own)) == before
    assert all(torch.equal(now, then) for now, then in zip(tensors_of(own), values, strict=True))
    assert all(parameter.grad is None for parameter in own.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_shifts_stays_as_it_was(name: str, model: nn.Module, styles: SourceStyles) -> None:
    if named.find(adaptation, name).sees.source_styles and name != "style_shift":
        pytest.skip("it shifts by itself")
    robust = ShiftedModel(model, styles, alpha=0.0).train()
    named.build(adaptation, name, **EAGER.get(name, {})).wrap(robust)(images(0))
    assert robust.training
    assert torch.equal(robust.eval()(images(0)), ShiftedModel(model, styles, alpha=0.0)(images(0)))


@pytest.mark.parametrize("name", NAMES)
def test_no_mode_around_it_changes_its_answers(name: str, model: nn.Module, styles: SourceStyles) -> None:
    """Not inference mode, not switched-off gradients, not train()."""
    expected = [adapted(images(seed)) for adapted in [eager(name, model, styles)] for seed in range(2)]
    adapted = eager(name, model, styles).train()
    with torch.inference_mode():
        found = [adapted(images(seed)) for seed in range(2)]
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    with torch.no_grad():
        adapted.reset()
        assert torch.equal(adapted(images(0)), expected[0])


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_depends_on_the_images_beside_it_only_if_it_says_so(
    name: str, model: nn.Module, styles: SourceStyles
) -> None:
    alone = eager(name, model, styles)(images(0))[0]
    beside = eager(name, model, styles)(torch.cat([images(0)[:1], images(7)[1:]]))[0]
    if named.find(adaptation, name).sees.other_images:
        assert (alone - beside).abs().max() > 1e-3
    else:
        torch.testing.assert_close(alone, beside)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_depends_on_earlier_batches_only_if_it_says_so(
    name: str, model: nn.Module, styles: SourceStyles
) -> None:
    adapted = eager(name, model, styles)
    first = adapted(images(0))
    adapted(images(7))
    gap = (adapted(images(0)) - first).abs().max()
    assert gap > 1e-4 if named.find(adaptation, name).sees.earlier_batches else gap == 0


@pytest.mark.parametrize("name", NAMES)
def test_weights_change_only_if_it_says_so(name: str, model: nn.Module, styles: SourceStyles) -> None:
    adapted = eager(name, model, styles)
    learns = any(parameter.requires_grad for parameter in adapted.body.parameters())
    says = named.find(adaptation, name).sees.updates_weights
    assert says or all(
        torch.equal(now, then) for now, then in zip(adapted.body.parameters(), model.parameters(), strict=True)
    )
    assert says == learns or not says


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("given", "said"),
    [(torch.zeros(3, 16, 16), "batches"), (torch.zeros(0, 3, 16, 16), "at least one image")],
)
def test_what_is_no_batch_of_images_is_refused(
    name: str, given: Tensor, said: str, model: nn.Module, styles: SourceStyles
) -> None:
    with pytest.raises(ValueError, match=said):
        wrapped(name, model, styles)(given)


@pytest.mark.parametrize("name", [name for name in NAMES if named.find(adaptation, name).sees.source_styles])
def test_without_the_styles_it_needs_it_says_how_to_get_them(name: str, model: nn.Module) -> None:
    with pytest.raises(ValueError, match="sources_of"):
        named.build(adaptation, name).wrap(model)


@pytest.mark.parametrize("name", NAMES)
def test_channels_last_images_get_the_same_answers(name: str, model: nn.Module, styles: SourceStyles) -> None:
    lying = images(0).contiguous(memory_format=torch.channels_last)
    found = wrapped(name, model, styles)(lying)
    torch.testing.assert_close(found, wrapped(name, model, styles)(images(0)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_depends_on_the_sources_only_if_it_says_so(name: str, model: nn.Module, styles: SourceStyles) -> None:
    """On their styles, where it is given others; on their images, where it is given some."""
    slow = {**EAGER.get(name, {}), **({"learning_rate": 0.01} if name == "eata" else {})}
    method = named.build(adaptation, name, **slow)

    def third_answer(styles: SourceStyles, sources: list[Tensor] | None) -> tuple[Sees, Tensor]:
        adapted = method.wrap(model, styles=styles, images=sources)
        return adapted.sees, [adapted(images(seed)) for seed in range(3)][2]

    _, plainly = third_answer(styles, None)
    sees, other_styles = third_answer(replace(styles, mean=styles.mean * 1.5), None)
    assert (not torch.equal(other_styles, plainly)) == sees.source_styles
    sees, with_images = third_answer(styles, [images(8)])
    assert (not torch.equal(with_images, plainly)) == sees.source_images


REMEMBERING = [
    name
    for name in NAMES
    for sees in (named.find(adaptation, name).sees,)
    if sees.earlier_batches or sees.updates_weights
]


@pytest.mark.parametrize("name", REMEMBERING)
def test_from_images_that_hold_nan_nothing_is_learned(name: str, model: nn.Module, styles: SourceStyles) -> None:
    adapted = eager(name, model, styles)
    expected = eager(name, model, styles)(images(0))
    try:
        assert adapted(images(0) * torch.nan).isnan().all()
    except ValueError as refusal:
        assert "NaN" in str(refusal)  # noqa: PT017 - either answer will do
    assert torch.equal(adapted(images(0)), expected)
