"""T3A, against its pseudo-code in plain Python, and against what the released code does with "all"."""

import math
from typing import Literal

import pytest
import torch
from tests.adaptation.conftest import TinyNet, World
from torch import Tensor, nn

from styleshift.adaptation.t3a import FILTERS, T3A, Supports, head_of
from styleshift.shifted import ShiftedModel

Keep = int | Literal["all"]
Support = tuple[list[float], int, float]


def normalised(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value**2 for value in vector))
    return [value / max(length, 1e-12) for value in vector]


def entropy_of(row: list[float]) -> float:
    powers = [math.exp(value) for value in row]
    return -sum(power / sum(powers) * math.log(power / sum(powers)) for power in powers)


class LiteralT3A:
    """The supports as a list of (feature, class, entropy)."""

    def __init__(self, net: TinyNet, keep: Keep, *, as_released: bool = False) -> None:
        self.rows, self.bias = net.head.weight.tolist(), net.head.bias.tolist()
        self.keep, self.as_released = keep, as_released
        self.supports = [self._support(row) for row in self.rows]

    def __call__(self, features: list[list[float]]) -> list[list[float]]:
        self.supports += [self._support(feature) for feature in features]
        self.supports = [support for k in range(len(self.rows)) for support in self._kept(k)]
        prototypes = []
        for k in range(len(self.rows)):
            members = [normalised(feature) for feature, its, _ in self.supports if its == k]
            prototypes.append(normalised([sum(values) for values in zip(*members, strict=True)] or [0.0, 0.0]))
        return [[sum(a * b for a, b in zip(feature, p, strict=True)) for p in prototypes] for feature in features]

    def _support(self, feature: list[float]) -> Support:
        pairs = zip(self.rows, self.bias, strict=True)
        logits = [bias + sum(a * b for a, b in zip(feature, row, strict=True)) for row, bias in pairs]
        return feature, logits.index(max(logits)), entropy_of(logits)

    def _kept(self, k: int) -> list[Support]:
        members = sorted((support for support in self.supports if support[1] == k), key=lambda support: support[2])
        if self.keep == "all":
            # the released code says "all" with -1, and cuts every class's list at -1
            return members[:-1] if self.as_released else members
        return members[: self.keep]


def features_of(net: TinyNet, images: Tensor) -> list[list[float]]:
    rows: list[list[float]] = net.norm(images).mean(dim=(2, 3)).tolist()
    return rows


@pytest.mark.parametrize("keep", [1, 2, *FILTERS[1:]])
def test_it_is_the_pseudo_code_step_by_step(keep: Keep, tiny: TinyNet, stream: list[Tensor]) -> None:
    t3a, literal = T3A(keep).wrap(tiny), LiteralT3A(tiny, keep)
    for images in (*stream, *(batch.flip(0) * 1.3 for batch in stream)):
        expected = torch.tensor(literal(features_of(tiny, images)), dtype=torch.float64)
        torch.testing.assert_close(t3a(images), expected, rtol=1e-9, atol=1e-9)
    assert len(t3a.supports.features) == len(literal.supports)


def test_all_keeps_every_support_where_the_released_code_loses_one_a_class_and_batch(
    tiny: TinyNet, stream: list[Tensor]
) -> None:
    t3a, released = T3A("all").wrap(tiny), LiteralT3A(tiny, "all", as_released=True)
    gaps = []
    for images in stream:
        found = torch.tensor(released(features_of(tiny, images)), dtype=torch.float64)
        gaps.append(float((t3a(images) - found).abs().max()))
    assert len(t3a.supports.features) == 3 + 8
    assert len(released.supports) < 3 + 8
    assert max(gaps) > 1e-3


def test_of_equal_entropies_those_stay_that_came_first() -> None:
    supports = Supports(torch.arange(4.0)[:, None], torch.tensor([1, 1, 0, 1]), torch.tensor([0.5, 0.5, 0.9, 0.1]))
    assert supports.filtered(2).features[:, 0].tolist() == [0, 2, 3]


def test_a_class_without_a_support_is_no_answer() -> None:
    supports = Supports(torch.ones(1, 2), torch.tensor([1]), torch.zeros(1))
    assert supports.prototypes(3)[[0, 2]].abs().sum() == 0


def test_it_replaces_the_head_and_changes_no_weight(world: World) -> None:
    t3a = T3A().wrap(world.model)
    t3a(world.images)
    assert all(
        torch.equal(now, then) for now, then in zip(t3a.body.parameters(), world.model.parameters(), strict=True)
    )
    assert t3a.head is t3a.body.get_submodule("fc")


def test_around_a_model_that_shifts_its_features_are_shifted(world: World) -> None:
    robust = ShiftedModel(world.model, world.styles, alpha=0.0)
    both, alone = T3A().wrap(robust)(world.images), T3A().wrap(world.model)(world.images)
    assert (both - alone).abs().max() > 1e-3


def test_a_head_that_is_not_the_last_step_is_refused_with_advice() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.ReLU())
    with pytest.raises(ValueError, match=r"is not what the model gives \(\[2, 4\]\)\. Name the layer .* head="):
        T3A().wrap(net)(torch.randn(2, 3, 2, 2))


@pytest.mark.parametrize(
    ("net", "name", "said"),
    [(nn.Flatten(), None, "has no linear layer"), (nn.Linear(2, 2), "fc", "no linear layer 'fc'; there are")],
)
def test_a_head_that_is_not_there_is_said(net: nn.Module, name: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        head_of(net, name)


def test_images_that_hold_nan_are_said_and_leave_nothing_behind(tiny: TinyNet, stream: list[Tensor]) -> None:
    t3a = T3A().wrap(tiny)
    with pytest.raises(ValueError, match="the features of these images hold NaN or infinity"):
        t3a(stream[0] * torch.nan)
    assert torch.equal(t3a(stream[0]), T3A().wrap(tiny)(stream[0]))


@pytest.mark.parametrize("keep", [0, -1])
def test_a_filter_that_is_none_is_refused(keep: int) -> None:
    with pytest.raises(ValueError, match="at least 1, or 'all'; got"):
        T3A(keep)
