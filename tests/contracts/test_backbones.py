"""What holds for every backbone in every variant: found, not listed.

Shapes and places are those of a model on torch's meta device, which computes nothing; numbers are of the first variant.
"""

import inspect
import logging
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from styleshift import backbones, layers, named
from styleshift.attaching import Place, attach, features_at, places
from styleshift.backbones.building import backbone, network
from styleshift.layers.style_shifting import StyleShifting
from styleshift.style.statistics import Style, style_of

FAMILIES = named.names(backbones)
VARIANTS = {family: getattr(named.find(backbones, family), "variants", ("",)) for family in FAMILIES}
POINTS = {
    f"{family}{variant}": named.find(backbones, family).points for family in FAMILIES for variant in VARIANTS[family]
}
NAMES = tuple(POINTS)
METHODS = [(name, method) for name in NAMES for method in POINTS[name]]
FIRST = [f"{family}{VARIANTS[family][0]}" for family in FAMILIES]
IMAGES = torch.randn(3, 3, 36, 36, generator=torch.Generator().manual_seed(0))


def sketched(name: str, classes: int = 4) -> Any:
    """The backbone on the meta device, where tensors have shapes and no numbers."""
    with torch.device("meta"):
        return network(name, classes)


@cache
def found_places(name: str) -> dict[str, Place]:
    """The places of the backbone, in the order in which they run."""
    return {place.name: place for place in places(sketched(name), IMAGES.to("meta"))}


@cache
def built(name: str) -> Any:
    """The backbone with 4 classes in eval mode, always with the same weights; nobody changes it."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return network(name, 4).eval()


@cache
def logits_of(name: str) -> Tensor:
    with torch.no_grad():
        logits: Tensor = built(name)(IMAGES)
    return logits


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_what_it_is_and_what_each_argument_means(family: str) -> None:
    said = inspect.getdoc(named.find(backbones, family)) or ""
    assert re.match(r"[A-Z][^\n]+\.", said)
    for argument in inspect.signature(named.find(backbones, family)).parameters:
        assert re.search(rf"^{argument}: \S", said, flags=re.MULTILINE), f"nothing about {argument}"


@pytest.mark.parametrize("family", FAMILIES)
def test_where_there_are_variants_the_first_is_the_default(family: str) -> None:
    variant = inspect.signature(named.find(backbones, family)).parameters.get("variant")
    assert (variant.default if variant else "") == VARIANTS[family][0]


def test_no_two_variants_have_one_name() -> None:
    assert len(NAMES) == sum(len(variants) for variants in VARIANTS.values())


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_module_that_runs_what_it_shifts_at_and_more_after_it(name: str) -> None:
    model, found = sketched(name), found_places(name)
    assert isinstance(model, nn.Module)
    assert model.shift_at in found
    assert not found[model.shift_at].last


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("classes", "shape"), [(1, (1, 3, 32, 32)), (5, (5, 3, 33, 47)), (9, (2, 3, 224, 192))])
def test_it_gives_a_logit_a_class_for_any_batch_and_size(name: str, classes: int, shape: tuple[int, ...]) -> None:
    model = sketched(name, classes).eval()
    assert model(torch.zeros(shape, device="meta")).shape == (shape[0], classes)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_its_points_are_places_in_the_order_in_which_they_run(name: str, method: str) -> None:
    points = list(POINTS[name][method])
    assert points
    assert [place for place in found_places(name) if place in points] == points


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_its_points_take_the_layer_that_they_are_for(name: str, method: str) -> None:
    model = sketched(name).train()
    styling = {
        point: named.build(layers, method, p=1.0, generator=torch.Generator().manual_seed(0))
        for point in POINTS[name][method]
    }
    with attach(model, styling):
        assert model(IMAGES.to("meta")).shape == (3, 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_reaches_every_parameter(name: str) -> None:
    model = sketched(name).train()
    model(IMAGES.to("meta")).sum().backward()
    assert not [key for key, parameter in model.named_parameters() if parameter.grad is None]


@pytest.mark.parametrize("name", FIRST)
def test_its_logits_are_numbers_that_differ_from_image_to_image(name: str) -> None:
    assert logits_of(name).isfinite().all()
    assert (logits_of(name).std(dim=0) > 0).all()


@pytest.mark.parametrize("name", FIRST)
def test_in_eval_mode_no_image_sees_another(name: str) -> None:
    alone = built(name)(IMAGES[1:2])
    torch.testing.assert_close(alone, logits_of(name)[1:2], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", FIRST)
def test_a_shift_where_it_says_changes_its_logits(name: str) -> None:
    model = built(name)
    own = style_of(features_at(model, [model.shift_at], IMAGES)[model.shift_at].detach())
    elsewhere = StyleShifting(Style.of_phi(own.phi.mean(dim=0, keepdim=True) * 3), alpha=0.0)
    with attach(model, {model.shift_at: elsewhere}):
        assert not torch.allclose(model(IMAGES), logits_of(name), rtol=1e-2)


@pytest.mark.parametrize("name", FIRST)
def test_a_seed_gives_the_same_start_twice_and_another_seed_another(name: str) -> None:
    starts = []
    for seed in (3, 3, 4):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            starts.append(list(network(name, 2).parameters())[-1])
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


@pytest.mark.parametrize("name", FIRST)
def test_its_state_is_all_there_is_to_it(name: str) -> None:
    other = network(name, 4).eval()
    other.load_state_dict(built(name).state_dict())
    with torch.no_grad():
        assert torch.equal(other(IMAGES), logits_of(name))


@pytest.fixture(params=NAMES)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, dict[str, Tensor]]:
    """A backbone's name, a file of its weights, and the same in memory."""
    held = built(request.param).state_dict()
    save_file(held, tmp_path / "weights.safetensors")
    return request.param, tmp_path / "weights.safetensors", held


def test_a_file_of_its_weights_loads_whole(
    written: tuple[str, Path, dict[str, Tensor]], caplog: pytest.LogCaptureFixture
) -> None:
    name, file, held = written
    with caplog.at_level(logging.WARNING):
        loaded = backbone(name, classes=4, weights=file).state_dict()
    assert all(torch.equal(loaded[key], tensor) for key, tensor in held.items())
    assert not caplog.text


def test_a_head_of_another_size_starts_at_random_and_all_else_is_loaded(
    written: tuple[str, Path, dict[str, Tensor]], caplog: pytest.LogCaptureFixture
) -> None:
    name, file, held = written
    loaded = backbone(name, classes=6, weights=file).state_dict()
    differing = [key for key, tensor in held.items() if not torch.equal(loaded[key], tensor)]
    assert {loaded[key].shape[0] for key in differing} == {6}
    assert len({key.rpartition(".")[0] for key in differing}) == 1
    assert all(loaded[key].std() > 0 for key in differing)
    assert f"{name}: the head ({', '.join(differing)}) does not fit" in caplog.text
