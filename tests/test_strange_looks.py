"""Familiar images in strange looks."""

import cmath

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.strange_looks import LOOKS, edges, inverted, jittered, strange_looks, textured


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def unit(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


def chance() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_there_are_four_looks() -> None:
    assert list(strange_looks(drawn(3, 3, 8, 8))) == ["jitter", "inverted", "edges", "texture"]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("shape", [(5, 3, 8, 8), (1, 3, 7, 9), (2, 1, 5, 4), (4, 3, 1, 1)])
def test_a_look_keeps_the_shape_and_the_range_of_every_channel(look: str, shape: tuple[int, ...]) -> None:
    images = drawn(*shape) * 3 + 1
    strange = strange_looks(images)[look]
    assert strange.shape == images.shape
    for channel in range(shape[1]):
        assert strange[:, channel].min() >= images[:, channel].min() - 1e-5
        assert strange[:, channel].max() <= images[:, channel].max() + 1e-5


@pytest.mark.parametrize("look", LOOKS)
def test_it_is_strange(look: str) -> None:
    images = drawn(6, 3, 16, 16)
    assert (strange_looks(images)[look] - images).abs().mean() > 0.2


def test_the_seed_draws_and_nothing_else() -> None:
    images = drawn(6, 3, 8, 8)
    one, same, other = (strange_looks(images, seed) for seed in (0, 0, 1))
    assert all(torch.equal(one[look], same[look]) for look in LOOKS)
    assert not torch.equal(one["jitter"], other["jitter"])
    assert torch.equal(one["edges"], other["edges"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_look_keeps_the_dtype(dtype: torch.dtype) -> None:
    assert {strange.dtype for strange in strange_looks(drawn(2, 3, 8, 8).to(dtype)).values()} == {dtype}


def test_it_does_not_write_into_the_images() -> None:
    images = drawn(2, 3, 8, 8)
    before = images.clone()
    strange_looks(images)
    assert torch.equal(images, before)


def test_images_that_never_vary_stay_what_they_are() -> None:
    images = torch.full((3, 3, 4, 4), 0.7)
    assert all(torch.allclose(strange, images) for strange in strange_looks(images).values())


@settings(deadline=None, max_examples=20)
@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_how_images_were_normalised_does_not_matter(scale: float, offset: float) -> None:
    images = drawn(4, 3, 6, 6)
    plain, normalised = strange_looks(images), strange_looks(images * scale + offset)
    for look in LOOKS:
        torch.testing.assert_close(normalised[look], plain[look] * scale + offset, rtol=1e-2, atol=2e-2 * scale)


def test_inverted_twice_is_the_image() -> None:
    images = unit(2, 3, 4, 4)
    torch.testing.assert_close(inverted(inverted(images, chance()), chance()), images)


def test_jitter_changes_mean_and_contrast_and_no_shape() -> None:
    images = unit(2, 3, 6, 6)
    strange = jittered(images, chance())
    for image, other in zip(images.flatten(0, 1), strange.flatten(0, 1), strict=True):
        slope = (other - other.mean()) / (image - image.mean())
        torch.testing.assert_close(slope, slope.mean().expand_as(slope), rtol=1e-3, atol=1e-3)
        assert 0.25 <= slope.mean() <= 4
        assert abs(other.mean() - image.mean()) <= 0.4 + 1e-5


def test_an_edge_is_dark_and_a_plain_is_white() -> None:
    half = torch.zeros(1, 3, 4, 6)
    half[..., 3:] = 1.0
    drawing = edges(half, chance())[0, 0]
    assert drawing[:, 2].tolist() == [0.0] * 4
    assert drawing[:, [0, 1, 3, 4, 5]].min() == 1.0


def test_edges_by_hand() -> None:
    image = unit(1, 2, 3, 4)
    grey = image[0].mean(dim=0).tolist()
    change = [
        [abs(grey[y][min(x + 1, 3)] - grey[y][x]) + abs(grey[min(y + 1, 2)][x] - grey[y][x]) for x in range(4)]
        for y in range(3)
    ]
    strongest = max(map(max, change))
    wanted = torch.tensor([[1 - value / strongest for value in row] for row in change])
    torch.testing.assert_close(edges(image, chance())[0], wanted.expand(2, 3, 4))


def spectrum(image: Tensor) -> list[list[complex]]:
    """The Fourier transform by its definition."""
    height, width = image.shape
    values = image.tolist()
    return [
        [
            sum(
                values[y][x] * cmath.exp(-2j * cmath.pi * (v * y / height + u * x / width))
                for y in range(height)
                for x in range(width)
            )
            for u in range(width)
        ]
        for v in range(height)
    ]


def test_texture_is_another_images_amplitude_with_its_own_phase() -> None:
    images = unit(2, 1, 4, 5).double()
    strange = textured(images, chance())
    for own, other in ((0, 1), (1, 0)):
        mixed, phases, amplitudes = (spectrum(image) for image in (strange[own, 0], images[own, 0], images[other, 0]))
        for v in range(4):
            for u in range(5):
                wanted = cmath.rect(abs(amplitudes[v][u]), cmath.phase(phases[v][u]))
                # the frequencies that are their own mirror image are real: only their sign is phase
                assert abs(mixed[v][u] - wanted) < 1e-6


def test_every_image_takes_its_texture_from_another() -> None:
    images = unit(9, 1, 4, 4)
    strange = textured(images, chance())
    sums = {round(float(image.sum()), 3): row for row, image in enumerate(images)}
    lenders = [sums[round(abs(float(image.sum())), 3)] for image in strange]
    assert sorted(lenders) == list(range(9))
    assert all(lender != row for row, lender in enumerate(lenders))
