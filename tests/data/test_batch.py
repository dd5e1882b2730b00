"""Batch."""

import torch

from styleshift.data.batch import Batch


def test_it_unpacks_as_images_classes_domains() -> None:
    images, classes, domains = Batch(torch.zeros(2, 3, 4, 4), torch.tensor([0, 1]), torch.tensor([2, 2]))
    assert images.shape == (2, 3, 4, 4)
    assert classes.tolist() == [0, 1]
    assert domains.tolist() == [2, 2]
