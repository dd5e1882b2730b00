"""Test-time methods as rows of results."""

import pytest
import torch
from tests.training.conftest import Made
from torch import nn

from styleshift.adaptation.tent import Tent
from styleshift.backbones.building import network
from styleshift.data.transforms import Light
from styleshift.sources import SourceStyles, sources_of
from styleshift.training.adapted_rows import AdaptedRow, row_of
from styleshift.training.evaluate import evaluate
from styleshift.training.online import inference_times, online_result
from styleshift.training.source_data import Part
from styleshift.training.streams import stream
from styleshift.training.variants import shift_row

HOW = Light(cache_size=20, size=16)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = network("smallnet", 3)
        for _ in range(3):
            net(torch.randn(16, 3, 16, 16))
    return net.eval()


@pytest.fixture
def part(made: Made) -> Part:
    indices = made.split.test
    classes, domains = (torch.from_numpy(labels[indices]) for labels in (made.dataset.classes, made.dataset.domains))
    return Part(made.images, indices, classes, domains)


@pytest.fixture
def styles(model: nn.Module, made: Made) -> dict[str, SourceStyles]:
    rows = made.split.train
    images = HOW.test(made.images.take(rows))
    return {"layer2": sources_of(model, [(images, made.dataset.domains[rows])], "layer2")}


def adapted(name: str) -> AdaptedRow:
    row = row_of(name, "layer2")
    assert isinstance(row, AdaptedRow)
    return row


def test_it_is_the_method_over_the_shuffled_images_once(model: nn.Module, part: Part, made: Made) -> None:
    result = online_result(adapted("tent:learning_rate=0.1"), model, part, HOW, {}, seed=5)
    tent, hits = Tent(0.1).wrap(model), 0
    for numbers in stream("iid", part.classes, part.domains, seed=5):
        said = tent(HOW.test(made.images.take(part.indices[numbers.numpy()]))).argmax(dim=1)
        hits += int((said == part.classes[numbers]).sum())
    assert result.metrics.accuracy == hits / len(part)
    assert result.shifted == 0


def test_a_method_that_does_nothing_has_the_plain_models_metrics(
    model: nn.Module, part: Part, styles: dict[str, SourceStyles]
) -> None:
    plain = evaluate(model, part.test_batches(HOW, 8), {}, [shift_row("none", "layer2")]).rows["none"].metrics
    found = online_result(adapted("bn_stats:share=0"), model, part, HOW, {})
    assert found.metrics.confusion == plain.confusion
    assert found.metrics.per_domain == plain.per_domain


def test_around_a_shift_the_share_shifted_is_told(
    model: nn.Module, part: Part, styles: dict[str, SourceStyles]
) -> None:
    names = ("ts:alpha=0+t3a", "ts:alpha=1e9+t3a", "conststyle")
    assert [online_result(adapted(name), model, part, HOW, styles).shifted for name in names] == [1.0, 0.0, 1.0]


def test_times_are_of_the_rows_asked_for(model: nn.Module, part: Part, styles: dict[str, SourceStyles]) -> None:
    rows = [("tent", adapted("tent")), ("ts:at=layer2", row_of("ts", "layer2"))]
    found = inference_times(rows, model, part, HOW, styles)
    assert list(found) == ["tent", "ts:at=layer2"]
    assert all(milliseconds > 0 for milliseconds in found.values())
