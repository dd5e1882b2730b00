"""TS among the test-time methods is TS."""

import pytest
import torch
from tests.adaptation.conftest import World

from styleshift.adaptation.style_shift import StyleShift
from styleshift.shifted import ShiftedModel
from styleshift.style.shifting import Variant


@pytest.mark.parametrize("name", ["ts", "all", "sampled=5", "soft", "partial=0.8"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_it_is_the_model_that_fit_would_give(name: str, alpha: float, world: World) -> None:
    expected = ShiftedModel(world.model, world.styles, alpha, Variant.named(name), seed=3)(world.images)
    assert torch.equal(StyleShift(name, alpha, seed=3).wrap(world.model, styles=world.styles)(world.images), expected)


def test_a_fitted_model_brings_its_own_way_and_keeps_its_mode(world: World) -> None:
    robust = ShiftedModel(world.model, world.styles, alpha=2.0)
    expected = robust(world.images)
    adapted = StyleShift(alpha=99.0).wrap(robust.train())
    assert torch.equal(adapted(world.images), expected)
    assert robust.training


@pytest.mark.parametrize(
    ("settings", "said"), [({"variant": "near"}, "a variant is one of"), ({"alpha": -1.0}, "got -1")]
)
def test_wrong_settings_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        StyleShift(**settings)  # type: ignore[arg-type]  # wrong on purpose
