"""MEMO: every image by itself, from views of it."""

import pytest
import torch
from tests.adaptation.conftest import World
from torch import nn

from styleshift.adaptation.entropy import marginal_entropy
from styleshift.adaptation.memo import MEMO, own_parameters, views
from styleshift.adaptation.wrapping import body_of


def test_its_answer_is_that_after_one_step_on_views_of_the_image(world: World) -> None:
    """A network without BatchNorm, with a plain copy, plain autograd and a plain step."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    image = world.images[:1]
    parameters = {name: value.detach().clone().requires_grad_() for name, value in net.named_parameters()}
    seen = views(image, 6, torch.Generator().manual_seed(2))
    loss = marginal_entropy(torch.func.functional_call(net, parameters, seen))
    slopes = torch.autograd.grad(loss, list(parameters.values()))
    after = {name: value - 0.5 * slope for (name, value), slope in zip(parameters.items(), slopes, strict=True)}
    expected = torch.func.functional_call(net, after, image).detach()
    torch.testing.assert_close(MEMO(0.5, views=6, seed=2).wrap(net)(image), expected)


def test_a_step_makes_the_mean_prediction_surer(world: World) -> None:
    seen = views(world.images[:1], 8, torch.Generator().manual_seed(0))
    memo = MEMO(1.0, views=8).wrap(world.model)
    before = marginal_entropy(memo.body(seen))
    memo.learner.step(marginal_entropy(memo.body(seen)))
    assert marginal_entropy(memo.body(seen)) < before


def test_batch_norm_takes_a_seventeenth_of_what_passes(world: World) -> None:
    memo = MEMO(0.0, views=1).wrap(world.model)
    memo(world.images[:1])
    norm = world.model.get_submodule("bn1")
    passed = world.model.get_submodule("conv1")(world.images[:1]).mean(dim=(0, 2, 3))
    expected = (16 * norm.running_mean + passed) / 17
    torch.testing.assert_close(memo.body.get_buffer("bn1.running_mean"), expected.detach())


def test_views_have_the_images_size_and_values_from_within_it(world: World) -> None:
    seen = views(world.images[:1], 20, torch.Generator().manual_seed(0))
    assert seen.shape == (20, 3, 16, 16)
    assert seen.amin() >= world.images[0].amin() - 1e-5
    assert seen.amax() <= world.images[0].amax() + 1e-5
    assert len({view.sum().item() for view in seen}) == 20


def test_views_of_the_smallest_image_are_that_image() -> None:
    image = torch.ones(1, 3, 1, 1)
    assert torch.equal(views(image, 3, torch.Generator().manual_seed(0)), image.repeat(3, 1, 1, 1))


def test_shared_parameters_stay_shared() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    body = body_of(net)
    assert len(own_parameters(body)) == 3
    assert body.get_parameter("0.weight") is body.get_parameter("1.weight")


def test_a_model_without_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter that could learn"):
        MEMO().wrap(nn.Flatten())


@pytest.mark.parametrize("settings", [{"steps": 0}, {"views": 0}, {"prior": -1.0}])
def test_wrong_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at least"):
        MEMO(**settings)  # type: ignore[arg-type]  # whole numbers among them
