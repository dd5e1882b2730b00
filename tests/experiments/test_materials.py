"""What all runs of a recipe share."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from styleshift.backbones import zoo
from styleshift.experiments import materials
from styleshift.experiments.materials import content_of, first_weights, images_of, materials_of
from styleshift.experiments.planning import Run, runs_of
from styleshift.experiments.recipe import Recipe
from styleshift.experiments.scales import scale


def test_smoke_needs_neither_dataset_nor_weights(small: Recipe, tmp_path: Path) -> None:
    run = runs_of(small, scale("smoke"))[0]
    found = materials_of(run, tmp_path / "store", data=tmp_path / "no data")
    assert found.dataset.domain_names == ("art_painting", "cartoon", "photo", "sketch")
    assert len(found.images.images) == len(found.dataset)
    assert found.weights_sha256 is None


def test_smoke_of_a_users_own_dataset_has_its_domains(small: Recipe, tmp_path: Path) -> None:
    for domain in ("day", "night"):
        (tmp_path / "mine" / domain / "car").mkdir(parents=True)
        (tmp_path / "mine" / domain / "car" / "1.png").touch()
    run = replace(runs_of(small, scale("smoke"))[0], dataset=str(tmp_path / "mine"), domain="day")
    assert materials_of(run, tmp_path / "store").dataset.domain_names == ("day", "night")


def test_images_need_no_weights(small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for domain in ("day", "night"):
        (tmp_path / "mine" / domain / "car").mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "mine" / domain / "car" / "1.png")
    run = replace(runs_of(small, scale("cpu"))[0], dataset=str(tmp_path / "mine"))
    dataset, images = images_of(run, tmp_path / "store")
    assert dataset.domain_names == ("day", "night")
    assert images.take([0, 1]).shape == (2, 3, 128, 128)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, 'mine comes without published lists, so it has no "official" split'),
        ({"split": "random", "domain": "dusk"}, "mine has no domain 'dusk'"),
        ({"split": "random", "scenario": "class-imbalanced:3/2/2"}, "shares must name 1 sources"),
    ],
)
def test_a_split_that_cannot_be_is_said_before_images_are_decoded(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], said: str
) -> None:
    monkeypatch.setattr(materials, "decoded", None)
    for domain in ("day", "night"):
        (tmp_path / "mine" / domain / "car").mkdir(parents=True)
        (tmp_path / "mine" / domain / "car" / "1.png").touch()
    run = replace(runs_of(small, scale("quickstart"))[0], dataset=str(tmp_path / "mine"), domain="day", split="random")
    with pytest.raises((ValueError, KeyError), match=said):
        materials_of(run, tmp_path / "store", others=[replace(run, **{"split": "official", **changed})])


def test_what_names_the_materials_is_known_before_they_are_decoded(small: Recipe, tmp_path: Path) -> None:
    run = runs_of(small, scale("smoke"))[0]
    assert content_of(run, tmp_path / "store") == materials_of(run, tmp_path / "store").content


def test_nothing_names_materials_that_are_not_here(small_runs: list[Run], tmp_path: Path) -> None:
    assert content_of(small_runs[0], tmp_path / "store", tmp_path) is None
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "resnet18.safetensors").touch()
    assert content_of(small_runs[0], tmp_path / "store", tmp_path) is None


def test_weights_are_named_by_their_content(small_runs: list[Run], tmp_path: Path) -> None:
    weights = tmp_path / "weights" / "resnet18_imagenet.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"abc")
    assert first_weights(small_runs[0], tmp_path, None) == weights


def test_weights_that_are_not_there_are_fetched(
    small_runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def published(library: str, name: str) -> Path:
        asked.append((library, name))
        (tmp_path / "fetched.pth").touch()
        return tmp_path / "fetched.pth"

    monkeypatch.setattr(zoo, "published", published)
    assert first_weights(small_runs[0], tmp_path, None) == tmp_path / "fetched.pth"
    assert asked == [("torchvision", "resnet18")]


def test_training_never_starts_at_random_in_silence(
    small_runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoo, "published", lambda library, name: None)
    with pytest.raises(FileNotFoundError, match=r"no weights to start resnet18 from.*--weights FILE"):
        first_weights(small_runs[0], tmp_path, None)


def test_a_weights_file_that_is_not_there_is_named(small_runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.safetensors"):
        first_weights(small_runs[0], tmp_path, tmp_path / "gone.safetensors")


@pytest.mark.parametrize(
    ("name", "said"), [("x.png", "Weights come as .safetensors or"), ("w.safetensors", "cannot be read as weights")]
)
def test_a_wrong_weights_file_is_refused_before_images_are_looked_for(
    small_runs: list[Run], tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / name).write_text("garbage")
    with pytest.raises(ValueError, match=said):
        materials_of(small_runs[0], tmp_path / "store", tmp_path / "no data", tmp_path / name)


def test_a_wrong_weights_file_is_refused_where_it_would_go_unused(small: Recipe, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_text("garbage")
    run = runs_of(small, scale("smoke"))[0]
    with pytest.raises(ValueError, match=r"w\.safetensors cannot be read as weights"):
        first_weights(run, tmp_path, tmp_path / "w.safetensors")
