"""torchvision's and timm's networks: built, attached to, and equal to ours where they are the same network."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from styleshift.attaching import attach, features_at, places
from styleshift.backbones import zoo
from styleshift.backbones.building import network, weights_for
from styleshift.backbones.resnet import ResNet
from styleshift.twins import twin

pytestmark = [
    pytest.mark.zoo,
    pytest.mark.skipif(
        not (find_spec("timm") and find_spec("torchvision")),
        reason="the zoo extra (torchvision, timm) is not installed",
    ),
]

SMALL_VIT = {"image_size": 32, "patch_size": 8, "num_layers": 3, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 32}
SMALL_SWIN = {"patch_size": [4, 4], "embed_dim": 12, "depths": [1, 1], "num_heads": [1, 2], "window_size": [4, 4]}
SMALL_TOKENS = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 3}

# library, network, its settings, a layer, its layout, channels and places there; images are 32 pixels wide
LAYERS = [
    ("torchvision", "resnet18", {}, "layer2", "nchw", 128, 4 * 4),
    ("torchvision", "convnext_tiny", {}, "features.3", "nchw", 192, 4 * 4),
    ("torchvision", "mobilenet_v3_small", {}, "features.2", "nchw", 24, 4 * 4),
    ("torchvision", "SwinTransformer", SMALL_SWIN, "features.1", "nhwc", 12, 8 * 8),
    ("torchvision", "SwinTransformer", SMALL_SWIN, "features.0", "nhwc", 12, 8 * 8),
    ("torchvision", "VisionTransformer", SMALL_VIT, "encoder.layers.encoder_layer_1", "tokens", 16, 4 * 4),
    ("timm", "resnet18", {}, "layer2", "nchw", 128, 4 * 4),
    ("timm", "convnext_atto", {}, "stages.1", "nchw", 80, 4 * 4),
    ("timm", "efficientnet_lite0", {}, "blocks.1", "nchw", 24, 8 * 8),
    ("timm", "swin_tiny_patch4_window7_224", {"img_size": 32, "embed_dim": 24}, "layers.1", "nhwc", 48, 4 * 4),
    ("timm", "vit_tiny_patch16_224", SMALL_TOKENS | {"num_heads": 2}, "blocks.1", "tokens", 16, 4 * 4),
    ("timm", "vit_tiny_patch16_224", SMALL_TOKENS | {"num_heads": 2, "reg_tokens": 4}, "blocks.1", "tokens", 16, 4 * 4),
    ("timm", "deit_tiny_distilled_patch16_224", SMALL_TOKENS | {"num_heads": 2}, "blocks.1", "tokens", 16, 4 * 4),
]


def zoo_network(library: str, name: str, settings: dict[str, Any]) -> nn.Module:
    """A network in eval mode, small where it can be, whose head says something (many start at zero)."""
    package = zoo.imported(library)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if not settings:
            model = zoo.build(library, name, 5)
        elif library == "timm":
            model = package.create_model(name, num_classes=5, **settings)
        else:
            model = getattr(import_module("torchvision.models"), name)(num_classes=5, **settings)
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.1)
    return model.eval()


class Mirror(nn.Module):
    """A layer whose effect nothing undoes: the features, negated."""

    def forward(self, features: Tensor) -> Tensor:
        return -features


@pytest.mark.parametrize(("library", "name", "settings", "layer", "layout", "channels", "count"), LAYERS)
def test_a_layer_finds_its_maps_and_changes_the_logits(
    library: str, name: str, settings: dict[str, Any], layer: str, layout: str, channels: int, count: int
) -> None:
    model, images = zoo_network(library, name, settings), torch.randn(2, 3, 32, 32)
    with torch.inference_mode():
        plain = model(images)
        features = features_at(model, [layer], images)[layer]
        with attach(model, {layer: Mirror()}):
            mirrored = model(images)
        assert torch.equal(model(images), plain)
    place = {place.name: place for place in places(model, images)}[layer]
    assert (features.shape[1], features.shape[2] * features.shape[3]) == (channels, count)
    assert (place.layout, place.channels, place.height * place.width) == (layout, channels, count)
    assert not torch.equal(mirrored, plain)


@pytest.mark.parametrize(
    ("name", "settings", "size", "before_last", "last"),
    [
        ("resnet18", {}, 64, "layer3", "layer4"),
        ("vit_tiny_patch16_224", SMALL_TOKENS | {"num_heads": 2}, 32, "blocks.1", "blocks.2"),
    ],
)
def test_the_last_block_is_known_as_the_last(
    name: str, settings: dict[str, Any], size: int, before_last: str, last: str
) -> None:
    model = zoo_network("timm", name, settings)
    found = {place.name: place for place in places(model, torch.zeros(1, 3, size, size))}
    assert (found[before_last].last, found[last].last) == (False, True)


@pytest.mark.parametrize(
    ("library", "name", "settings"),
    [
        ("torchvision", "SwinTransformer", SMALL_SWIN),
        ("torchvision", "VisionTransformer", SMALL_VIT),
        ("timm", "vit_tiny_patch16_224", SMALL_TOKENS | {"num_heads": 2}),
    ],
)
def test_a_twin_gives_what_the_model_gives(library: str, name: str, settings: dict[str, Any]) -> None:
    model, images = zoo_network(library, name, settings), torch.randn(1, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(twin(model)(images), model(images))


@pytest.mark.parametrize(("variant", "size"), [("18", 64), ("50", 224)])
def test_our_resnet_gives_torchvisions_logits_bit_for_bit(variant: str, size: int) -> None:
    theirs, ours = network(f"torchvision:resnet{variant}", 1000).eval(), ResNet(variant).eval()
    for key, buffer in theirs.named_buffers():
        if key.endswith("running_var"):
            buffer.uniform_(0.5, 2.0)
    ours.load_state_dict(theirs.state_dict())
    images = torch.randn(1, 3, size, size)
    with torch.inference_mode():
        assert torch.equal(ours(images), theirs(images))


def test_our_resnet_starts_as_torchvisions_from_the_same_seed() -> None:
    states = []
    for name in ("torchvision:resnet18", "resnet18"):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            states.append(network(name, 7).state_dict())
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][key]) for key, tensor in states[0].items())


def test_weights_in_torchvisions_own_cache_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STYLESHIFT_DATA", raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cached = tmp_path / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    cached.parent.mkdir(parents=True)
    torch.save({}, cached)
    assert weights_for("resnet18", download=True) == cached


def test_a_network_of_no_library_has_no_published_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STYLESHIFT_DATA", raising=False)
    assert weights_for("smallnet", download=True) is None


@pytest.mark.parametrize("library", zoo.LIBRARIES)
def test_a_wrong_name_is_answered_with_near_ones(library: str) -> None:
    with pytest.raises(KeyError, match=rf"{library} has no network 'resnet81'; did you mean one of .*resnet18"):
        zoo.build(library, "resnet81", 3)
