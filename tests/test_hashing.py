"""The hash by which images are chosen."""

import numpy as np
import torch
from torch import Tensor

from styleshift.hashing import image_keys, mixed


def drawn(count: int, side: int = 4) -> Tensor:
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(0))


def test_it_is_the_images_own_whatever_comes_with_it() -> None:
    images = drawn(20)
    assert torch.equal(image_keys(images)[7:9], image_keys(images[7:9]))
    assert torch.equal(image_keys(images.to(memory_format=torch.channels_last)), image_keys(images))


def test_one_number_that_differs_makes_another_hash() -> None:
    images = drawn(1).repeat(48, 1, 1, 1)
    images.view(48, 48).diagonal().mul_(1 + 1e-6)
    assert len(set(image_keys(torch.cat([images, drawn(1)])).tolist())) == 49


def test_of_a_large_image_some_numbers_evenly_spread_are_read() -> None:
    large = drawn(1, side=64)  # 12,288 numbers, of which every third
    for number, is_read in ((0, True), (1, False), (2, False), (3, True), (12_285, True)):
        other = large.clone()
        other.view(-1)[number] += 1
        assert (image_keys(other) != image_keys(large)).item() is is_read


def test_an_image_in_half_precision_has_the_hash_of_its_values() -> None:
    images = drawn(3).bfloat16()
    assert torch.equal(image_keys(images), image_keys(images.float()))


def test_no_image_has_no_hash() -> None:
    assert image_keys(drawn(0)).shape == (0,)


def test_mixing_is_one_to_one_and_spreads_neighbours_over_all_bits() -> None:
    keys = np.arange(10_000, dtype=np.uint64)
    found = mixed(keys)
    assert len(set(found.tolist())) == 10_000
    ones = np.unpackbits(found.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert abs(ones - 0.5).max() < 0.03  # the standard error is .005
    assert mixed(np.array([1], dtype=np.uint64))[0] == 0x5692161D100B05E5  # splitmix64's finaliser of 1
