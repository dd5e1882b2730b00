"""Changes of colour, against plain Python one pixel at a time."""

import colorsys

import pytest
import torch
from torch import Tensor

from styleshift.data import colour

FACTORS = [0.7, 1.0, 1.3]


def pictures(count: int = 3) -> Tensor:
    images = torch.rand(count, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    images[:, :, 0, 0] = 0.5
    images[:, :, 0, 1] = 0.0
    images[:, 0, 0, 2] = images[:, 1, 0, 2]
    return images


def pixels(images: Tensor) -> list[list[tuple[float, ...]]]:
    return [[tuple(pixel) for pixel in image.flatten(1).T.double().tolist()] for image in images]


def clipped(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def grey_of(pixel: tuple[float, ...]) -> float:
    return sum(weight * value for weight, value in zip((0.2989, 0.587, 0.114), pixel, strict=True))


def assert_same(images: Tensor, expected: list[list[tuple[float, ...]]]) -> None:
    torch.testing.assert_close(
        images.flatten(2).transpose(1, 2).double(), torch.tensor(expected).double(), atol=2e-6, rtol=0
    )


def test_brightness_multiplies_and_clips() -> None:
    expected = [
        [tuple(clipped(factor * value) for value in pixel) for pixel in image]
        for image, factor in zip(pixels(pictures()), FACTORS, strict=True)
    ]
    assert_same(colour.brightness(pictures(), torch.tensor(FACTORS)), expected)


def test_contrast_moves_from_the_images_mean_grey() -> None:
    expected = []
    for image, factor in zip(pixels(pictures()), FACTORS, strict=True):
        mean = sum(map(grey_of, image)) / len(image)
        expected.append([tuple(clipped(factor * value + (1 - factor) * mean) for value in pixel) for pixel in image])
    assert_same(colour.contrast(pictures(), torch.tensor(FACTORS)), expected)


def test_saturation_moves_from_each_pixels_grey() -> None:
    expected = [
        [tuple(clipped(factor * value + (1 - factor) * grey_of(pixel)) for value in pixel) for pixel in image]
        for image, factor in zip(pixels(pictures()), FACTORS, strict=True)
    ]
    assert_same(colour.saturation(pictures(), torch.tensor(FACTORS)), expected)


@pytest.mark.parametrize("turn", [-0.3, -0.1, 0.0, 0.25, 0.5])
def test_hue_turns_in_hsv(turn: float) -> None:
    expected: list[list[tuple[float, ...]]] = []
    for image in pixels(pictures()):
        hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in image]
        expected.append([tuple(colorsys.hsv_to_rgb((h + turn) % 1, s, v)) for h, s, v in hsv])
    assert_same(colour.hue(pictures(), torch.full((3,), turn)), expected)


def test_jitter_makes_the_changes_in_each_images_own_order() -> None:
    images, orders = pictures(2), [[3, 0, 2, 1], [1, 2, 0, 3]]
    factors = torch.tensor([[0.8, 1.2, 0.9, 0.1], [1.1, 0.7, 1.3, -0.2]])
    for index, order in enumerate(orders):
        expected = images[index : index + 1]
        for change in order:
            expected = colour.CHANGES[change](expected, factors[index : index + 1, change])
        jittered = colour.jittered(images, factors, torch.tensor(orders))[index : index + 1]
        torch.testing.assert_close(jittered, expected)


def test_jitter_leaves_what_it_was_given() -> None:
    images = pictures(1)
    colour.jittered(images, torch.full((1, 4), 0.3), torch.tensor([[0, 1, 2, 3]]))
    assert torch.equal(images, pictures(1))
