"""What a training leaves behind."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from styleshift.backbones.building import backbone
from styleshift.training.settings import Settings
from styleshift.training.trained import EpochFacts, Trained, expect_same


def record() -> Trained:
    return Trained(
        settings=Settings(backbone="smallnet", points=("layer1",)),
        data="abc",
        class_names=("cat", "dog"),
        domain_names=("photo",),
        history=(EpochFacts(1.5), EpochFacts(0.5, 0.75)),
        epoch=2,
        images=640,
        seconds=1.25,
    )


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    record().write(tmp_path, backbone("smallnet", classes=2))
    assert Trained.read(tmp_path) == record()


def test_the_model_comes_back_in_eval_mode(tmp_path: Path) -> None:
    model = backbone("smallnet", classes=2).eval()
    record().write(tmp_path, model)
    again = record().model(tmp_path)
    images = torch.randn(2, 3, 16, 16)
    assert not again.training
    assert torch.equal(again(images), model(images))


def test_an_empty_folder_holds_nothing_trained(tmp_path: Path) -> None:
    assert Trained.read(tmp_path) is None


def test_weights_of_others_are_not_taken_for_a_training(tmp_path: Path) -> None:
    save_file({"w": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="was not written by a training of ours"):
        Trained.read(tmp_path)


def test_all_that_differs_is_said_in_one_line(tmp_path: Path) -> None:
    found = {**Settings(seed=1, epochs=2).plain(), "warm_up": 5}
    with pytest.raises(ValueError, match=r"epochs is 2 there and 5 here; seed is 1 .*; warm_up is 5") as said:
        expect_same(tmp_path / "c", found, "x", Settings(), "y")
    assert "the images, labels or split differ" in str(said.value)
    assert "\n" not in str(said.value)


def test_what_is_the_same_is_accepted(tmp_path: Path) -> None:
    expect_same(tmp_path / "c", Settings().plain(), "x", Settings(), "x")
