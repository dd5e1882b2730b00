"""Scales."""

import pytest

from styleshift.experiments.recipe import recipe
from styleshift.experiments.scales import scale, scale_for
from styleshift.training.settings import Settings

SCALES = ["smoke", "quickstart", "cpu", "paper"]


@pytest.mark.parametrize("name", SCALES)
def test_every_scale_makes_a_training(name: str) -> None:
    assert Settings.of(scale(name).training)


def test_it_names_near_scales_for_an_unknown_one() -> None:
    with pytest.raises(KeyError, match="smoke"):
        scale("smok")


def test_the_papers_scale_is_the_papers_schedule() -> None:
    training = Settings.of(scale("paper").training)
    assert (training.epochs, training.batch_size, training.learning_rate) == (150, 128, 1e-3)
    assert (training.nesterov, training.schedule, training.precision) == (False, "cosine-epoch", "float32")
    assert scale("paper").seeds == [0, 1, 2, 3, 4]


def test_only_smoke_is_not_real_and_the_small_ones_start_at_random() -> None:
    assert [name for name in SCALES if scale(name).generated] == ["smoke"]
    assert [name for name in SCALES if not scale(name).pretrained] == ["smoke", "quickstart"]


def test_a_recipe_has_its_own_scale_for_when_none_is_asked_for() -> None:
    assert scale_for(recipe("quickstart"), None).name == "quickstart"
    assert scale_for(recipe("pacs-original"), None).name == "cpu"
    assert scale_for(recipe("quickstart"), "smoke").name == "smoke"
