"""A training on images of one's own."""

from pathlib import Path

import numpy as np
import pytest

import styleshift
from styleshift.data.domains import Domains
from styleshift.experiments.generated import generated
from styleshift.experiments.own_images import Outcome, everything, train_on
from styleshift.experiments.scales import Generated, scale
from styleshift.training.progress import silent
from styleshift.training.settings import Settings
from styleshift.training.trained import Trained

DOMAINS = ("ink", "oil", "photo")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Domains:
    """Two classes in three domains, ten images of each."""
    amount = Generated(images=10, classes=2, size=32)
    return generated("own", DOMAINS, amount, tmp_path_factory.mktemp("own"))


@pytest.fixture(autouse=True)
def _cache_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def trained(own: Domains, target: str | None, folder: Path) -> Outcome:
    settings = Settings.of({**scale("smoke").training, "backbone": "smallnet", "augment": "mixstyle"})
    return train_on(own, settings, target, folder, None, silent)


def test_the_domain_left_out_is_tested_plain_and_shifted(own: Domains, tmp_path: Path) -> None:
    outcome = trained(own, "ink", tmp_path)
    assert (outcome.shift_at, set(outcome.accuracy)) == ("layer2", {"none", "ts"})
    assert all(0 <= share <= 1 for share in outcome.accuracy.values())


def test_it_leaves_a_model_that_shifts_to_the_other_domains(own: Domains, tmp_path: Path) -> None:
    trained(own, "ink", tmp_path)
    found = Trained.read(tmp_path)
    assert found is not None
    robust = styleshift.load(found.model(tmp_path), tmp_path / "styles-layer2.safetensors")
    assert robust.sources.domains == ("oil", "photo")


def test_without_a_target_all_domains_are_sources_and_nothing_is_tested(own: Domains, tmp_path: Path) -> None:
    assert trained(own, None, tmp_path) == Outcome("layer2", {})
    found = Trained.read(tmp_path)
    assert found is not None
    assert found.domain_names == DOMAINS


def test_of_every_domain_a_tenth_validates(own: Domains) -> None:
    split = everything(own, seed=0)
    assert np.bincount(own.domains[split.validation]).tolist() == [2, 2, 2]
    assert sorted([*split.train, *split.validation]) == list(range(len(own)))
    assert (len(split.test), split.sources) == (0, (0, 1, 2))


def test_the_seed_draws_who_validates(own: Domains) -> None:
    assert everything(own, seed=1).validation.tolist() == everything(own, seed=1).validation.tolist()
    assert everything(own, seed=1).validation.tolist() != everything(own, seed=2).validation.tolist()
