"""A dataset for torch's DataLoader."""

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader

from styleshift.data.decoding import rgb
from styleshift.data.domains import Domains
from styleshift.data.files import ImageFiles


def to_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image.resize((8, 8))))


def test_it_gives_the_transformed_image_with_its_labels(small: Domains) -> None:
    image, class_, domain = ImageFiles(small, lambda image: image.size)[7]
    assert image == rgb(small.path(7)).size
    assert (class_, domain) == (small.classes[7], small.domains[7])


def test_it_gives_only_the_chosen_images(small: Domains) -> None:
    chosen = ImageFiles(small, to_tensor, [8, 2])
    assert len(chosen) == 2
    assert chosen[0][1:] == (small.classes[8], small.domains[8])


def test_a_dataloader_batches_it(small: Domains) -> None:
    loader = DataLoader(ImageFiles(small, to_tensor), batch_size=12)
    images, classes, domains = next(iter(loader))
    assert images.shape == (12, 8, 8, 3)
    assert classes.tolist() == small.classes.tolist()
    assert domains.tolist() == small.domains.tolist()
