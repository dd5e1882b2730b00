"""Transforms, each against a literal version that treats one image at a time."""

import math

import pytest
import torch
from torch import Generator, Tensor
from torch.nn.functional import interpolate

from styleshift.data import colour
from styleshift.data.transforms import TRANSFORMS, TSB, DomainBed, Light, Small, Transform, normalised, transform

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]

SMALL: list[Transform] = [Light(20, 16), Small(20, 16), TSB(16, 16), DomainBed(16, 16)]


def cached(count: int, side: int) -> Tensor:
    images = torch.randint(0, 256, (count, 3, side, side), generator=seeded(7))
    return images.to(torch.uint8).contiguous(memory_format=torch.channels_last)


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def test_light_crops_flips_brightens_and_greys() -> None:
    images, draws = cached(40, 20), seeded()
    corners = torch.randint(0, 5, (2, 40), generator=draws).tolist()
    flips, factors, greys = torch.rand(3, 40, generator=draws).tolist()
    expected = []
    for index, image in enumerate(images):
        top, left = corners[0][index], corners[1][index]
        cut = image[:, top : top + 16, left : left + 16] / 255
        cut = cut.flip(2) if flips[index] < 0.5 else cut
        cut = (cut * (0.8 + 0.4 * factors[index])).clamp(max=1)
        if greys[index] < 0.1:
            cut = (0.2989 * cut[0] + 0.587 * cut[1] + 0.114 * cut[2]).expand(3, 16, 16)
        expected.append((cut - MEAN) / STD)
    torch.testing.assert_close(Light(20, 16).train(images, seeded()), torch.stack(expected), atol=1e-5, rtol=0)
    assert min(greys) < 0.1


@pytest.mark.parametrize("tests", [Light(20, 16), Small(20, 16)])
def test_what_is_cached_larger_is_tested_on_the_middle_crop(tests: Transform) -> None:
    images = cached(2, 20)
    torch.testing.assert_close(tests.test(images), (images[:, :, 2:18, 2:18] / 255 - MEAN) / STD)


def test_small_crops_and_leaves_everything_else() -> None:
    images, draws = cached(40, 20), seeded()
    tops, lefts = torch.randint(0, 5, (2, 40), generator=draws).tolist()
    cut = [image[:, y : y + 16, x : x + 16] for image, y, x in zip(images, tops, lefts, strict=True)]
    torch.testing.assert_close(Small(20, 16).train(images, seeded()), (torch.stack(cut) / 255 - MEAN) / STD)


def test_tsb_now_and_then_enlarges_and_crops() -> None:
    images = cached(20, 16)
    chances, downs, rights, flips = torch.rand(4, 20, generator=seeded()).tolist()
    expected = []
    for index, image in enumerate(images):
        cut = image.float()
        if chances[index] < 0.5:
            large = interpolate(cut[None], size=(18, 18), mode="bilinear", align_corners=False)[0].round()
            top, left = round(downs[index] * 2), round(rights[index] * 2)
            cut = large[:, top : top + 16, left : left + 16]
        cut = cut.flip(2) if flips[index] < 0.5 else cut
        expected.append((cut / 255 - MEAN) / STD)
    torch.testing.assert_close(TSB(16, 16).train(images, seeded()), torch.stack(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("tests", [TSB(16, 16), DomainBed(16, 16)])
def test_what_is_cached_at_its_size_is_tested_as_it_is(tests: Transform) -> None:
    images = cached(2, 16)
    torch.testing.assert_close(tests.test(images), (images / 255 - MEAN) / STD)


def test_domainbed_crops_flips_jitters_and_greys() -> None:
    images, draws = cached(30, 16), seeded()
    areas, ratios = torch.rand(2, 30, 10, generator=draws).tolist()
    corners = torch.rand(30, 2, generator=draws).tolist()
    flips, greys = torch.rand(2, 30, generator=draws).tolist()
    factors = (torch.rand(30, 4, generator=draws) * 0.6 - 0.3) + torch.tensor([1.0, 1.0, 1.0, 0.0])
    orders = torch.rand(30, 4, generator=draws).argsort(dim=1).tolist()
    expected = []
    for index, image in enumerate(images):
        top, left, height, width = box_of(areas[index], ratios[index], corners[index], 16)
        cut = image[None, :, top : top + height, left : left + width] / 255
        cut = interpolate(cut, size=(16, 16), mode="bilinear", align_corners=False)
        cut = cut.flip(3) if flips[index] < 0.5 else cut
        for change in orders[index]:
            cut = colour.CHANGES[change](cut, factors[index, change][None])
        if greys[index] < 0.1:
            cut = colour.grey(cut).expand(1, 3, 16, 16)
        expected.append((cut[0] - MEAN) / STD)
    torch.testing.assert_close(DomainBed(16, 16).train(images, seeded()), torch.stack(expected), atol=2e-5, rtol=0)
    assert min(greys) < 0.1


def box_of(areas: list[float], ratios: list[float], corner: list[float], side: int) -> tuple[int, int, int, int]:
    for share, along in zip(areas, ratios, strict=True):
        area, ratio = (0.7 + 0.3 * share) * side * side, math.exp(math.log(4 / 3) * (2 * along - 1))
        width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if width <= side and height <= side:
            break
    else:
        width = height = side
    return int(corner[0] * (side - height + 1)), int(corner[1] * (side - width + 1)), height, width


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_it_gives_normalised_float32_in_channels_last(made: Transform) -> None:
    for ready in (made.train(cached(3, made.cache_size), seeded()), made.test(cached(3, made.cache_size))):
        assert ready.shape == (3, 3, made.size, made.size)
        assert ready.dtype == torch.float32
        assert ready.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_it_takes_images_in_either_memory_format(made: Transform) -> None:
    images = cached(5, made.cache_size)
    ready = made.train(images.contiguous(), seeded())
    assert torch.equal(ready, made.train(images, seeded()))


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_the_same_generator_state_gives_the_same_batch(made: Transform) -> None:
    images, draws = cached(5, made.cache_size), seeded()
    made.train(images, draws)
    state = draws.get_state()
    first = made.train(images, draws)
    draws.set_state(state)
    assert torch.equal(first, made.train(images, draws))


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_it_draws_as_much_whatever_it_is_given(made: Transform) -> None:
    ends = []
    for images in (cached(5, made.cache_size), cached(5, made.cache_size) // 2):
        draws = seeded()
        made.train(images, draws)
        ends.append(draws.get_state())
    assert torch.equal(*ends)


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_it_leaves_the_cached_images_as_they_were(made: Transform) -> None:
    images = cached(5, made.cache_size)
    made.train(images, seeded())
    made.test(images)
    assert torch.equal(images, cached(5, made.cache_size))


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_it_takes_a_single_image(made: Transform) -> None:
    assert made.train(cached(1, made.cache_size), seeded(3)).shape[0] == 1


@pytest.mark.parametrize("made", SMALL, ids=lambda made: type(made).__name__)
def test_images_of_another_size_are_refused_with_the_size_it_takes(made: Transform) -> None:
    with pytest.raises(ValueError, match=rf"{type(made).__name__} takes uint8 images \[B, 3, {made.cache_size}"):
        made.train(cached(2, made.cache_size + 1), seeded())


def test_light_does_not_turn_white_into_more_than_white() -> None:
    white = torch.full((64, 3, 20, 20), 255, dtype=torch.uint8)
    assert torch.allclose(
        Light(20, 16, grey=0.0).train(white, seeded()).amax(dim=(0, 2, 3)), ((1 - MEAN) / STD).flatten()
    )


def test_normalising_takes_imagenets_mean_and_deviation() -> None:
    images = torch.rand(2, 3, 5, 4)
    torch.testing.assert_close(normalised(images), (images - MEAN) / STD)


@pytest.mark.parametrize(
    ("name", "cache_size", "size"), [("light", 128, 112), ("small", 32, 28), ("tsb", 224, 224), ("domainbed", 224, 224)]
)
def test_it_is_known_by_its_protocols_name(name: str, cache_size: int, size: int) -> None:
    assert (transform(name).cache_size, transform(name).size) == (cache_size, size)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="light, small, tsb, domainbed"):
        transform("lite")
    assert sorted(TRANSFORMS) == ["domainbed", "light", "small", "tsb"]
