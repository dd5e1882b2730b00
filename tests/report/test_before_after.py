"""Both predictions side by side."""

import torch
from torch import Tensor, nn

import styleshift
from styleshift.report.before_after import before_and_after
from styleshift.training.metrics import predictions_of


def test_it_is_what_both_models_say(conv_net: nn.Module, images: Tensor) -> None:
    batches = [(images * scale + scale, ["dim", "bright"] * 2) for scale in (0.5, 2.0)]
    robust = styleshift.fit(conv_net, batches, at="block1", alpha=0.0)
    said = before_and_after(conv_net, robust, images)
    with torch.no_grad():
        assert torch.equal(said.before.confidence, predictions_of(conv_net(images)).confidence)
        assert torch.equal(said.after.confidence, predictions_of(robust(images)).confidence)
    assert said.seen.far.all()
    assert not torch.equal(said.before.confidence, said.after.confidence)


def test_near_images_keep_their_prediction(conv_net: nn.Module, images: Tensor) -> None:
    robust = styleshift.fit(conv_net, [(images, ["a", "b", "a", "b"])], at="block1", alpha=1e9)
    said = before_and_after(conv_net, robust, images)
    assert not said.seen.far.any()
    assert torch.equal(said.before.confidence, said.after.confidence)
