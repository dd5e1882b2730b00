"""What holds for every file of `styleshift.algorithms`."""

from dataclasses import fields, is_dataclass

import pytest
import torch

from styleshift import algorithms, named
from styleshift.backbones.building import backbone
from styleshift.data.batch import Batch
from styleshift.training.run import Algorithm

NAMES = named.names(algorithms)


def batch() -> Batch:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(12, 3, 16, 16, generator=generator)
    return Batch(images, torch.arange(12) % 3, torch.arange(12) % 2)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_frozen_dataclass_whose_fields_have_defaults(name: str) -> None:
    method = named.find(algorithms, name)
    assert is_dataclass(method)
    assert method.__dataclass_params__.frozen
    assert named.build(algorithms, name, **{field.name: field.default for field in fields(method)}) == method()


@pytest.mark.parametrize("name", NAMES)
def test_its_loss_is_one_finite_number_that_reaches_every_parameter(name: str) -> None:
    algorithm, model = named.build(algorithms, name), backbone("smallnet", classes=3)
    assert isinstance(algorithm, Algorithm)
    loss = algorithm.loss(model, batch(), torch.ones(3))
    assert loss.shape == ()
    assert loss.isfinite()
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_steps_along_its_gradient_lower_its_loss(name: str) -> None:
    algorithm, model = named.build(algorithms, name), backbone("smallnet", classes=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(10):
        loss = algorithm.loss(model, batch(), None)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_its_docstring_says_what_it_is(name: str) -> None:
    assert (named.find(algorithms, name).__doc__ or "").strip()
