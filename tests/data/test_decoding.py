"""Decoding image files."""

import contextlib
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from styleshift.data.decoding import DamagedImageError, available_cores, decoded_all, rgb, square


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "I;16", "LA"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("image.tif" if mode in ("CMYK", "I;16") else "image.png")
    Image.new(mode, (5, 4)).save(path)
    assert (rgb(path).mode, rgb(path).size) == ("RGB", (5, 4))


def test_a_grey_file_and_its_rgb_twin_have_the_same_pixels(tmp_path: Path) -> None:
    grey = Image.fromarray(np.arange(100, dtype=np.uint8).reshape(10, 10))
    grey.save(tmp_path / "grey.png")
    grey.convert("RGB").save(tmp_path / "rgb.png")
    assert rgb(tmp_path / "grey.png").tobytes() == rgb(tmp_path / "rgb.png").tobytes()


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "bmp", "webp"])
def test_half_a_file_is_damaged(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"image.{ending}"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DamagedImageError, match="cannot be decoded"):
        rgb(path)


@pytest.mark.parametrize(
    "content", [b"", b"no image", b"\x89PNG\r\n\x1a\n" + bytes(60), b"\xff\xd8\xff\xe0" + bytes(60)]
)
def test_what_is_no_image_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "image.png").write_bytes(content)
    with pytest.raises(DamagedImageError, match="cannot be decoded"):
        rgb(tmp_path / "image.png")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(DamagedImageError, match="is missing"):
        rgb(tmp_path / "image.png")


def test_a_square_of_its_own_size_is_left_alone() -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 12, 3)).astype(np.uint8))
    assert square(noise, 12).tobytes() == noise.tobytes()


@pytest.mark.parametrize(("width", "height"), [(30, 10), (10, 30), (7, 5), (100, 99)])
def test_a_square_is_the_middle_of_the_image(width: int, height: int) -> None:
    ramp = np.zeros((height, width, 3), dtype=np.uint8)
    ramp[..., 0] = np.linspace(0, 250, width)
    ramp[..., 1] = np.linspace(0, 250, height)[:, None]
    cut = np.asarray(square(Image.fromarray(ramp), 10))
    assert cut.shape == (10, 10, 3)
    assert np.abs(cut[..., :2].mean(axis=(0, 1)) - 125).max() < 8


def test_results_come_in_order_whoever_is_first_done() -> None:
    first_waits = threading.Event()

    def slow_at_first(number: int) -> int:
        if number == 0:
            assert first_waits.wait(10)
        elif number == 3:
            first_waits.set()
        return number * number

    assert list(decoded_all(slow_at_first, range(20), workers=2)) == [number * number for number in range(20)]


def test_an_error_comes_out_and_what_was_waiting_is_dropped() -> None:
    called: list[int] = []

    def fails_at_three(number: int) -> int:
        called.append(number)
        return 1 // (3 - number)

    with pytest.raises(ZeroDivisionError):
        list(decoded_all(fails_at_three, range(1000), workers=1))
    assert len(called) < 50


def test_it_stays_only_a_little_ahead_of_what_is_taken() -> None:
    called: list[int] = []
    with contextlib.closing(decoded_all(called.append, range(1000), workers=2)) as results:
        next(results)
    assert len(called) <= 17


def test_there_is_at_least_one_core() -> None:
    assert available_cores() >= 1
