"""All rows from one forward are what each would have been alone."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from styleshift.backbones.building import backbone
from styleshift.data.batch import Batch
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles, sources_of
from styleshift.training.evaluate import accuracy_of, evaluate, in_eval_mode
from styleshift.training.variants import shift_row

NAMES = (
    "none",
    "ts:alpha=0",
    "ts:alpha=2",
    "ts:alpha=4",
    "ts:alpha=99",
    "ts:all",
    "ts:sampled=5,alpha=2",
    "ts:soft,alpha=1.5",
    "ts:partial=0.5,alpha=0",
    "ts:at=layer1,alpha=2",
    "ts:at=layer3,alpha=0",
    "ts:at=layer3,all",
)
ROWS = [shift_row(name, at="layer2") for name in NAMES]


@pytest.fixture(scope="module")
def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = backbone("smallnet", classes=4)
        for _ in range(5):  # so that its norms have seen something
            network(torch.randn(32, 3, 16, 16))
        network.eval()
        with torch.no_grad():  # so that it predicts every class
            network.get_parameter("fc.bias").sub_(network(torch.randn(200, 3, 16, 16)).mean(dim=0))
    return network


@pytest.fixture(scope="module")
def images() -> Tensor:
    """Some near the sources, some far."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(40, 3, 16, 16, generator=generator) * torch.linspace(0.3, 2.5, 40)[:, None, None, None]


@pytest.fixture(scope="module")
def sources(model: nn.Module) -> dict[str, SourceStyles]:
    generator = torch.Generator().manual_seed(2)
    pictures = torch.randn(60, 3, 16, 16, generator=generator)
    domains = torch.arange(60) % 3
    pictures = pictures * (0.7 + 0.3 * domains)[:, None, None, None]
    return {layer: sources_of(model, [(pictures, domains)], layer) for layer in ("layer1", "layer2", "layer3")}


def batches(images: Tensor, classes: Tensor, size: int = 16) -> Iterator[Batch]:
    for rows in torch.arange(len(images)).split(size):
        yield Batch(images[rows], classes[rows], torch.zeros(len(rows), dtype=torch.int64))


def alone(model: nn.Module, images: Tensor, sources: dict[str, SourceStyles], name: str) -> tuple[Tensor, float]:
    """What one row predicts, and the share that it shifts, by the model that `styleshift.fit` would give."""
    row = shift_row(name, at="layer2")
    with torch.no_grad():
        if row.at is None:
            return model(images).argmax(dim=1), 0.0
        shifted = ShiftedModel(model, sources[row.at], row.alpha, row.variant)
        return shifted(images).argmax(dim=1), float(shifted.explain(images).far.double().mean())


@pytest.mark.parametrize("name", NAMES)
def test_every_prediction_is_that_of_a_model_fitted_for_one_row(
    name: str, model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]
) -> None:
    expected, share = alone(model, images, sources, name)
    result = evaluate(model, batches(images, expected), sources, ROWS).rows[name]
    # its predictions are taken for the truth, so a single other one would cost accuracy
    assert result.metrics.accuracy == 1.0
    assert result.shifted == pytest.approx(share)


def test_rows_differ(model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]) -> None:
    shares = {row.name: alone(model, images, sources, row.name)[1] for row in ROWS}
    assert 0 < shares["ts:alpha=4"] < shares["ts:alpha=2"] < shares["ts:alpha=0"] == 1
    plain, _ = alone(model, images, sources, "none")
    assert any(not torch.equal(plain, alone(model, images, sources, name)[0]) for name in NAMES[1:])


def test_small_forwards_give_what_large_ones_give(
    model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]
) -> None:
    classes = torch.arange(40) % 4
    large = evaluate(model, batches(images, classes), sources, ROWS).rows
    small = evaluate(model, batches(images, classes), sources, ROWS, max_samples=1).rows
    assert {name: row.metrics.confusion for name, row in small.items()} == {
        name: row.metrics.confusion for name, row in large.items()
    }


def test_shares_of_the_nearest_sources_sum_to_one(
    model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]
) -> None:
    result = evaluate(model, batches(images, torch.arange(40) % 4), sources, ROWS)
    assert sum(result.rows["ts:alpha=99"].nearest.values()) == pytest.approx(1)
    assert result.rows["none"].nearest == {}


def test_all_rows_share_one_forward_up_to_the_first_layer_that_shifts(
    model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]
) -> None:
    seen: dict[str, int] = {"conv1": 0, "layer1": 0}

    def count(name: str) -> Any:
        def hook(module: nn.Module, args: object, output: Tensor) -> None:
            seen[name] += len(output)

        return model.get_submodule(name).register_forward_hook(hook)

    handles = [count(name) for name in seen]
    evaluate(model, batches(images, torch.zeros(40, dtype=torch.int64)), sources, ROWS)
    for handle in handles:
        handle.remove()
    # twelve rows, and every image once
    assert seen == {"conv1": 40, "layer1": 40}


def test_only_what_some_row_needs_is_rendered(
    model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]
) -> None:
    seen: list[int] = []
    handle = model.get_submodule("layer3").register_forward_hook(lambda module, args, output: seen.append(len(output)))
    rows = [shift_row("none", "layer2"), shift_row("ts:alpha=4", "layer2")]
    result = evaluate(model, batches(images, torch.zeros(40, dtype=torch.int64), size=40), sources, rows)
    handle.remove()
    assert seen == [40 + round(40 * result.rows["ts:alpha=4"].shifted)]


def test_the_model_comes_back_as_it_was(model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]) -> None:
    model.train()
    model.get_submodule("bn1").eval()
    evaluate(model, batches(images, torch.arange(40) % 4), sources, ROWS)
    assert (model.training, model.get_submodule("bn1").training) == (True, False)
    assert not any(module._forward_hooks for module in model.modules())
    model.eval()


def test_a_layer_without_source_styles_is_named(model: nn.Module, images: Tensor) -> None:
    with pytest.raises(KeyError, match="a row shifts at layer2, but there are source styles for"):
        evaluate(model, batches(images, torch.zeros(40, dtype=torch.int64)), {}, ROWS[:2])


def test_nothing_to_test_on_is_said(model: nn.Module) -> None:
    with pytest.raises(ValueError, match="no batch came"):
        evaluate(model, [], {}, [shift_row("none", "layer2")])


def test_a_layer_that_gives_a_tuple_is_refused_with_advice(sources: dict[str, SourceStyles], images: Tensor) -> None:
    class Pair(nn.Module):
        def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
            return features, features

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer2 = Pair()

        def forward(self, images: Tensor) -> Any:
            return self.layer2(images)[0].mean(dim=(2, 3))

    with pytest.raises(TypeError, match=r"'layer2' gives a tuple\. Shift at another layer"):
        evaluate(Net(), batches(images, torch.zeros(40, dtype=torch.int64)), sources, ROWS[1:2])


def test_accuracy_is_that_of_the_model_as_it_is(model: nn.Module, images: Tensor) -> None:
    with torch.no_grad():
        classes = model(images).argmax(dim=1)
    classes[:10] = (classes[:10] + 1) % 4
    assert accuracy_of(model, batches(images, classes), "float32") == 0.75


@pytest.mark.usefixtures("half_precision")
def test_half_precision_nearly_agrees(model: nn.Module, images: Tensor, sources: dict[str, SourceStyles]) -> None:
    with torch.no_grad():
        classes = model(images).argmax(dim=1)
    result = evaluate(model, batches(images, classes), sources, ROWS, precision="bfloat16")
    assert result.rows["none"].metrics.accuracy > 0.8


def test_modes_come_back_after_an_error(model: nn.Module) -> None:
    model.train()
    with pytest.raises(RuntimeError, match="channels"), in_eval_mode(model):
        model(torch.zeros(1, 2, 16, 16))
    assert model.training
    model.eval()
