"""Scales."""

import pytest

from styleshift.experiments.scales import scale
from styleshift.training.settings import Settings


@pytest.mark.parametrize("name", ["smoke", "cpu", "paper"])
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


def test_only_smoke_is_neither_pretrained_nor_real() -> None:
    assert scale("smoke").generated
    assert not scale("smoke").pretrained
    assert all(scale(name).pretrained and not scale(name).generated for name in ("cpu", "paper"))
