"""A training without a recipe: which images it sees, and what it leaves behind."""

from pathlib import Path

import numpy as np
import pytest

from styleshift.data.domains import Domains
from styleshift.experiments.generated import generated
from styleshift.experiments.own_images import everything, train_on
from styleshift.experiments.scales import Generated
from styleshift.shifted import load
from styleshift.training.progress import silent
from styleshift.training.settings import Settings
from styleshift.training.trained import Trained

SETTINGS = Settings(backbone="smallnet", augment="mixstyle", balance=True, epochs=1, batch_size=16, threads=1)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Domains:
    """Three domains of two classes, ten images of each."""
    amount = Generated(images=10, classes=2, size=16)
    return generated("mine", ("day", "dusk", "night"), amount, tmp_path_factory.mktemp("mine"))


def test_without_a_target_every_domain_is_a_source(images: Domains) -> None:
    split = everything(images, seed=0)
    assert (split.sources, split.targets, len(split.test)) == ((0, 1, 2), (), 0)
    assert sorted([*split.train, *split.validation]) == list(range(60))


def test_a_tenth_of_each_domain_validates(images: Domains) -> None:
    assert np.bincount(images.domains[everything(images, seed=0).validation]).tolist() == [2, 2, 2]


def test_another_seed_validates_on_other_images(images: Domains) -> None:
    one, same, other = (everything(images, seed).validation.tolist() for seed in (0, 0, 1))
    assert one == same != other


def test_it_leaves_a_model_and_styles_of_all_domains(
    images: Domains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outcome = train_on(images, SETTINGS, None, tmp_path / "model", None, silent)
    assert (outcome.shift_at, outcome.accuracy) == ("layer2", {})
    trained = Trained.read(tmp_path / "model")
    assert trained
    assert trained.domain_names == ("day", "dusk", "night")
    robust = load(trained.model(tmp_path / "model"), tmp_path / "model" / "styles-layer2.safetensors")
    assert tuple(robust.sources.domains) == ("day", "dusk", "night")


def test_a_domain_that_is_left_out_is_tested_on_and_not_trained_on(
    images: Domains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outcome = train_on(images, SETTINGS, "night", tmp_path / "model", None, silent)
    assert list(outcome.accuracy) == ["none", "ts"]
    trained = Trained.read(tmp_path / "model")
    assert trained
    assert trained.domain_names == ("day", "dusk")
