"""Statistics of the test images: three settings of one mixture."""

import pytest
import torch
from tests.adaptation.conftest import TinyNet
from torch import Tensor

from styleshift.adaptation.bn_stats import BNStats


def test_share_0_is_the_model_as_it_is(tiny: TinyNet, stream: list[Tensor]) -> None:
    torch.testing.assert_close(BNStats(share=0.0).wrap(tiny)(stream[0]), tiny(stream[0]))


def test_share_1_is_batch_norm_as_in_training(tiny: TinyNet, stream: list[Tensor]) -> None:
    found = BNStats(share=1.0).wrap(tiny)(stream[0])
    torch.testing.assert_close(found, tiny.train()(stream[0]))


def test_without_a_share_larger_batches_count_for_more(tiny: TinyNet, stream: list[Tensor]) -> None:
    method = BNStats(prior=6.0)
    for images, share in ((stream[0], 3 / 9), (stream[1], 1 / 7)):
        assert torch.equal(method.wrap(tiny)(images), BNStats(share=share).wrap(tiny)(images))


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"share": 1.1}, r"in \[0, 1\], or None; got 1.1"), ({"prior": -1.0}, "at least 0; got -1.0")],
)
def test_wrong_settings_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BNStats(**settings)
