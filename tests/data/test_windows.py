"""Windows, against cutting and resizing one image at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from styleshift.data.windows import boxes, middle, resized_windows, windows


def pictures(count: int, height: int, width: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, height, width), generator=generator).to(torch.uint8)


@settings(max_examples=30, deadline=None)
@given(st.data(), st.booleans())
def test_a_window_is_what_slicing_gives(data: st.DataObject, channels_last: bool) -> None:
    images = pictures(4, 9, 7)
    top = torch.tensor(data.draw(st.lists(st.integers(0, 4), min_size=4, max_size=4)))
    left = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4)))
    flip = torch.tensor(data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
    given_images = images.contiguous(memory_format=torch.channels_last) if channels_last else images
    cut = windows(given_images, top, left, flip, 5)
    for index in range(4):
        expected = images[index, :, top[index] : top[index] + 5, left[index] : left[index] + 5]
        assert torch.equal(cut[index], expected.flip(2) if flip[index] else expected)


def test_windows_are_channels_last() -> None:
    zeros = torch.zeros(2, dtype=torch.int64)
    assert windows(pictures(2, 8, 8), zeros, zeros, zeros > 0, 4).is_contiguous(memory_format=torch.channels_last)


def test_the_middle_leaves_as_much_on_either_side() -> None:
    images = pictures(1, 8, 8)
    assert torch.equal(middle(images, 4), images[:, :, 2:6, 2:6])


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("box", [(0, 0, 16, 16), (3, 5, 11, 9), (15, 15, 1, 1), (2, 0, 14, 16)])
def test_a_resized_window_is_what_pillow_gives(box: tuple[int, int, int, int], flip: bool) -> None:
    images = pictures(1, 16, 16)
    top, left, height, width = box
    cut = Image.fromarray(images[0].permute(1, 2, 0).numpy()).crop((left, top, left + width, top + height))
    expected = np.asarray(cut.resize((16, 16), Image.Resampling.BILINEAR)).astype(float)
    given_box = resized_windows(images, torch.tensor([box]), torch.tensor([flip]), 16)[0].permute(1, 2, 0).numpy()
    # Pillow rounds to whole values after each of the two directions
    assert np.abs((given_box[:, ::-1] if flip else given_box) - expected).max() < 1.01


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(2**-6, 1, width=32), st.floats(-2, 2, width=32)), min_size=3, max_size=3),
    st.tuples(st.floats(0, 1 - 2**-24, width=32), st.floats(0, 1 - 2**-24, width=32)),
)
def test_a_box_lies_within_the_image(tries: list[tuple[float, float]], corner: tuple[float, float]) -> None:
    area, ratio = torch.tensor(tries).T
    top, left, height, width = boxes((20, 29), area[None], ratio[None], torch.tensor([corner]))[0].tolist()
    assert 0 <= top <= top + height <= 20
    assert 0 <= left <= left + width <= 29
    assert height > 0
    assert width > 0


def test_the_first_try_that_fits_is_taken() -> None:
    area = torch.tensor([[1.0, 0.25, 0.5]])
    ratio = torch.tensor([[1.0, 0.0, 0.0]])
    assert boxes((16, 16), area, ratio, torch.tensor([[0.5, 0.99]]))[0].tolist() == [4, 8, 8, 8]


def test_the_whole_image_is_taken_where_no_try_fits() -> None:
    assert boxes((16, 16), torch.ones(1, 2), torch.ones(1, 2), torch.zeros(1, 2))[0].tolist() == [0, 0, 16, 16]
