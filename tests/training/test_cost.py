"""What a method costs: counts by hand, ratios within wide margins."""

import pytest
import torch
from torch import Tensor, nn

from styleshift.adaptation.memo import MEMO
from styleshift.adaptation.sar import SAR
from styleshift.adaptation.style_shift import StyleShift
from styleshift.adaptation.t3a import T3A
from styleshift.adaptation.tent import Tent
from styleshift.adaptation.wrapping import Adapted, Sees, body_of
from styleshift.backbones.building import network
from styleshift.sources import sources_of
from styleshift.training.cost import Cost, Spread, costs


@pytest.fixture(scope="module")
def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return network("smallnet", 4).eval()


IMAGES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def cost_of(model: nn.Module, adapted: Adapted, images: Tensor = IMAGES) -> Cost:
    return costs(model, {"it": adapted}, images, rounds=1)[1]


def test_the_plain_model_comes_first_with_a_ratio_of_1(model: nn.Module) -> None:
    (plain,) = costs(model, {}, IMAGES, rounds=3)
    assert plain.ratio == Spread(1.0, 1.0, 1.0)
    assert (plain.method, plain.batch, plain.forwards, plain.backwards, plain.kept) == ("plain", 6, 1, 0, 0)
    assert plain.milliseconds is not None
    assert plain.milliseconds.low <= plain.milliseconds.median <= plain.milliseconds.high


@pytest.mark.parametrize(
    ("method", "forwards", "backwards"),
    [
        (T3A(), 1, 0),
        (Tent(), 1, 1),
        (Tent(steps=2), 2, 2),
        (SAR(margin=2.0, recovery=0.0), 2, 2),
        (MEMO(views=5), 6, 5),
    ],
)
def test_it_counts_what_passes_the_model(method: Tent, forwards: float, backwards: float, model: nn.Module) -> None:
    found = cost_of(model, method.wrap(model))
    assert (found.forwards, found.backwards) == (forwards, backwards)


def test_a_shift_is_one_forward_and_keeps_the_sources_styles(model: nn.Module) -> None:
    styles = sources_of(model, [(IMAGES, [0, 1, 2] * 2)], "layer2")
    found = cost_of(model, StyleShift().wrap(model, styles=styles))
    assert (found.forwards, found.backwards, found.graph) == (1, 0, 0)
    assert found.kept is not None
    # at least 3 centres of 2 * 32 numbers; at most these and the sample of 6, in double precision, with indices
    assert 3 * 64 * 4 <= found.kept <= 40 * 64 * 8


def test_what_shares_the_models_memory_costs_none(model: nn.Module) -> None:
    assert cost_of(model, Adapted(body_of(model), Sees())).kept == 0


def test_what_tent_keeps_is_its_own_norms_twice_and_adams_two_moments(model: nn.Module) -> None:
    norms = sum(2 * m.num_features for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    steps = sum(2 for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    found = cost_of(model, Tent().wrap(model))
    assert found.kept is not None
    assert found.kept == 4 * (4 * norms + steps)
    assert (found.graph or 0) > IMAGES.nbytes


def test_a_method_that_cannot_answer_says_why_and_the_others_are_timed() -> None:
    net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3), nn.Flatten())
    found = costs(net, {"tent": Tent().wrap(net), "nothing": Adapted(body_of(net), Sees())}, IMAGES[:1], rounds=2)
    assert [cost.method for cost in found] == ["plain", "tent", "nothing"]
    assert "more than one value a channel" in (found[1].refused or "")
    assert found[1].milliseconds is None
    assert found[2].ratio is not None


def test_methods_are_left_as_after_a_reset(model: nn.Module) -> None:
    tent = Tent(0.1).wrap(model)
    expected = Tent(0.1).wrap(model)(IMAGES)
    costs(model, {"tent": tent}, IMAGES, rounds=2)
    assert torch.equal(tent(IMAGES), expected)


def test_more_work_takes_longer(model: nn.Module) -> None:
    found = cost_of(model, MEMO(views=32).wrap(model))
    assert found.ratio is not None
    assert found.ratio.median > 3


def test_a_spread_is_the_median_and_its_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_no_round_is_refused(model: nn.Module) -> None:
    with pytest.raises(ValueError, match="at least 1 round is timed; got 0"):
        costs(model, {}, IMAGES, rounds=0)
