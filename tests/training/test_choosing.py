"""Which weights are kept."""

import torch

from styleshift.training.choosing import Chosen


def test_the_best_is_kept() -> None:
    chosen = Chosen()
    for epoch, accuracy in ((1, 0.5), (2, 0.7), (3, 0.6)):
        chosen.consider(epoch, accuracy, {"w": torch.tensor(float(epoch))})
    assert (chosen.epoch, chosen.accuracy, float(chosen.weights["w"])) == (2, 0.7, 2.0)


def test_of_equals_the_earliest_is_kept() -> None:
    chosen = Chosen()
    for epoch in (1, 2):
        chosen.consider(epoch, 0.5, {"w": torch.tensor(float(epoch))})
    assert chosen.epoch == 1


def test_kept_weights_do_not_follow_the_model() -> None:
    weight, chosen = torch.zeros(2), Chosen()
    chosen.consider(1, 0.5, {"w": weight})
    weight += 1
    assert chosen.weights["w"].tolist() == [0.0, 0.0]
