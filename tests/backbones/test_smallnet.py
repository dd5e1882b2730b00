"""The network for trying things out."""

import torch

from styleshift.backbones.smallnet import SmallNet


def test_it_gives_logits_of_any_image_size() -> None:
    assert SmallNet(classes=5)(torch.randn(2, 3, 16, 20)).shape == (2, 5)


def test_it_has_every_point_that_it_names() -> None:
    modules = dict(SmallNet().named_modules())
    assert all(name in modules for names in SmallNet.points.values() for name in names)
    assert SmallNet.shift_at in modules


def test_it_is_small() -> None:
    assert sum(parameter.numel() for parameter in SmallNet().parameters()) < 30_000
