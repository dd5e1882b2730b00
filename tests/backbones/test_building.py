"""Networks by name, and weights from files."""

import logging
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from styleshift import backbones, named
from styleshift.backbones.building import backbone, fill, network, weights_for
from styleshift.backbones.smallnet import SmallNet


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file of random weights for a SmallNet with 4 classes."""
    return written(SmallNet(classes=4).state_dict(), tmp_path / "smallnet.safetensors")


def written(tensors: dict[str, Tensor], file: Path) -> Path:
    save_file(tensors, file)
    return file


def test_every_family_can_be_built_in_every_variant() -> None:
    for family in named.names(backbones):
        for variant in getattr(named.find(backbones, family), "variants", ("",)):
            with torch.device("meta"):
                assert type(network(f"{family}{variant}", 3)) is named.find(backbones, family)


def test_building_and_zoo_are_no_families() -> None:
    assert not {"building", "zoo"} & set(named.names(backbones))


def test_the_files_weights_are_the_models(weights: Path) -> None:
    first, second = (backbone("smallnet", classes=4, weights=weights) for _ in range(2))
    assert all(torch.equal(tensor, second.state_dict()[key]) for key, tensor in first.state_dict().items())


def test_half_precision_weights_fill_single_precision_parameters(tmp_path: Path) -> None:
    halves = {key: tensor.half() for key, tensor in SmallNet(4).state_dict().items() if tensor.is_floating_point()}
    model = backbone("smallnet", classes=4, weights=written(halves, tmp_path / "half.safetensors"))
    parameter = dict(model.named_parameters())["conv1.weight"]
    assert parameter.dtype == torch.float32
    assert torch.equal(parameter, halves["conv1.weight"].float())


def test_batch_counts_may_be_absent(tmp_path: Path) -> None:
    state = {key: tensor for key, tensor in SmallNet(4).state_dict().items() if "num_batches" not in key}
    backbone("smallnet", classes=4, weights=written(state, tmp_path / "counted.safetensors"))


def test_a_head_of_another_size_is_left_at_its_start_and_named(weights: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = network("smallnet", 5)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    fill(model, weights, "smallnet")
    assert torch.equal(model.state_dict()["fc.weight"], before["fc.weight"])
    assert not torch.equal(model.state_dict()["conv1.weight"], before["conv1.weight"])
    assert "the head (fc.weight, fc.bias) does not fit" in caplog.text


def test_no_weights_are_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    backbone("smallnet")
    assert "smallnet: no weights given, so it starts at random" in caplog.text


def test_a_network_alone_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        network("smallnet", 4)
    assert not caplog.text


def test_a_file_of_another_network_is_told_in_one_line(tmp_path: Path) -> None:
    state = SmallNet(4).state_dict()
    state["conv1.weight"] = torch.zeros(2, 3, 1, 1)
    state["extra"] = torch.zeros(1)
    del state["bn1.bias"]
    with pytest.raises(ValueError, match="is not a smallnet") as refused:
        backbone("smallnet", classes=4, weights=written(state, tmp_path / "other.safetensors"))
    message = str(refused.value)
    assert "missing 1 (bn1.bias); unexpected 1 (extra); shape 1 (conv1.weight [2, 3, 1, 1])" in message
    assert "\n" not in message


def test_a_refused_file_changes_nothing(tmp_path: Path) -> None:
    state = {key: tensor + 1 for key, tensor in SmallNet(4).state_dict().items() if key != "bn1.bias"}
    model = network("smallnet", 4)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match="missing"):
        fill(model, written(state, tmp_path / "partial.safetensors"), "smallnet")
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())


@pytest.mark.parametrize("nested", [None, "state_dict", "model"])
def test_pth_files_are_read_too(tmp_path: Path, nested: str | None) -> None:
    state = SmallNet(4).state_dict()
    torch.save({nested: state, "epoch": 3} if nested else state, tmp_path / "weights.pth")
    model = backbone("smallnet", classes=4, weights=tmp_path / "weights.pth")
    assert torch.equal(model.state_dict()["conv1.weight"], state["conv1.weight"])


class Trap:
    """Unpickling this would write a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.file),)


def test_pth_files_run_no_code(tmp_path: Path) -> None:
    torch.save(Trap(tmp_path / "trapped"), tmp_path / "trap.pth")
    with pytest.raises(ValueError, match="cannot be read as weights"):
        backbone("smallnet", weights=tmp_path / "trap.pth")
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize("ending", ["safetensors", "pth"])
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"broken.{ending}"
    file.write_bytes(b"not weights at all")
    with pytest.raises(ValueError, match=f"broken.{ending} cannot be read as weights: [^\n]*$"):
        backbone("smallnet", weights=file)


def test_a_file_without_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "epoch.pth")
    with pytest.raises(ValueError, match="holds no state_dict"):
        backbone("smallnet", weights=tmp_path / "epoch.pth")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no weights file .*nothing\.safetensors"):
        backbone("smallnet", weights=tmp_path / "nothing.safetensors")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"come as \.safetensors or \.pth or \.pt; got .*weights\.npz"):
        backbone("smallnet", weights=tmp_path / "weights.npz")


def test_a_wrong_name_is_answered_with_near_ones() -> None:
    with pytest.raises(KeyError, match=r"no backbone 'resnet19'; did you mean one of .*'resnet18'"):
        backbone("resnet19")


@pytest.mark.parametrize("classes", [0, -1])
def test_a_head_without_classes_is_refused(classes: int) -> None:
    with pytest.raises(ValueError, match=f"at least one class; got classes={classes}"):
        backbone("smallnet", classes=classes)


def test_one_class_is_enough() -> None:
    assert backbone("smallnet", classes=1)(torch.zeros(1, 3, 32, 32)).shape == (1, 1)


def test_weights_that_are_given_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path, monkeypatch, "resnet18.safetensors")
    assert weights_for("resnet18", given="own.safetensors") == Path("own.safetensors")


@pytest.mark.parametrize("name", ["resnet18.safetensors", "resnet18_imagenet.safetensors", "resnet18_imagenet.pth"])
def test_weights_below_the_data_root_come_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = published(tmp_path, monkeypatch, name)
    assert weights_for("resnet18") == folder / name


@pytest.mark.parametrize("name", ["resnet180.safetensors", "resnet50_imagenet.safetensors", "resnet18_imagenet.txt"])
def test_files_of_other_networks_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    published(tmp_path, monkeypatch, name)
    assert weights_for("resnet18") is None


def test_a_folder_that_is_given_is_looked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = published(tmp_path, monkeypatch, "timm_vit.safetensors")
    monkeypatch.delenv("STYLESHIFT_DATA")
    assert weights_for("timm:vit", folder=folder) == folder / "timm_vit.safetensors"


def test_without_a_data_root_there_are_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STYLESHIFT_DATA", raising=False)
    assert weights_for("resnet18") is None


def published(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Path:
    """A data root with an (empty) weights file; the folder that it lies in."""
    monkeypatch.setenv("STYLESHIFT_DATA", str(root))
    (root / "weights").mkdir()
    (root / "weights" / name).touch()
    return root / "weights"


IMAGENET = weights_for("resnet18")


@pytest.mark.skipif(IMAGENET is None, reason="no ImageNet weights for resnet18 below $STYLESHIFT_DATA/weights")
def test_the_imagenet_weights_load_whole(caplog: pytest.LogCaptureFixture) -> None:
    backbone("resnet18", classes=1000, weights=IMAGENET)
    assert "starts at random" not in caplog.text
