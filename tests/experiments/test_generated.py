"""Images drawn instead of read."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from styleshift.data.protocols import leave_one_domain_out
from styleshift.experiments.generated import generated
from styleshift.experiments.scales import Generated

AMOUNT = Generated(images=4, classes=3, size=16)
DOMAINS = ("photo", "sketch")


def test_it_has_so_many_images_of_every_class_in_every_domain(tmp_path: Path) -> None:
    made = generated("pacs", DOMAINS, AMOUNT, tmp_path)
    assert made.counts().tolist() == [[4, 4, 4], [4, 4, 4]]
    assert all(made.path(index).is_file() for index in range(len(made)))


def test_it_draws_the_same_images_anywhere(tmp_path: Path) -> None:
    here, there = (generated("pacs", DOMAINS, AMOUNT, tmp_path / name) for name in ("here", "there"))
    for number in range(len(here)):
        assert here.path(number).read_bytes() == there.path(number).read_bytes()


def test_it_writes_no_image_twice(tmp_path: Path) -> None:
    first = generated("pacs", DOMAINS, AMOUNT, tmp_path).path(0).stat().st_mtime_ns
    assert generated("pacs", DOMAINS, AMOUNT, tmp_path).path(0).stat().st_mtime_ns == first


def test_domains_differ_in_colour(tmp_path: Path) -> None:
    made = generated("pacs", DOMAINS, AMOUNT, tmp_path)
    means = [
        np.mean([np.asarray(Image.open(made.path(n))).mean((0, 1)) for n in np.flatnonzero(made.domains == domain)], 0)
        for domain in (0, 1)
    ]
    assert np.abs(means[0] - means[1]).max() > 10


def test_some_of_it_validates_and_all_of_a_target_tests(tmp_path: Path) -> None:
    split = leave_one_domain_out(generated("pacs", DOMAINS, AMOUNT, tmp_path), "sketch", "official")
    assert (len(split.train), len(split.validation), len(split.test)) == (9, 3, 12)


@pytest.mark.parametrize("evil", ["../../../evil", "/evil", "..", "a/b", "."])
def test_whatever_a_domain_is_called_its_images_stay_below_the_folder(tmp_path: Path, evil: str) -> None:
    made = generated("pacs", (evil, "sketch", "a-b"), AMOUNT, tmp_path / "below")
    assert made.domain_names == (evil, "sketch", "a-b")
    assert len({made.path(index).resolve() for index in range(len(made))}) == len(made)
    assert all(made.path(index).resolve().is_relative_to(tmp_path / "below") for index in range(len(made)))


def test_the_path_of_a_dataset_is_no_place_to_write_to(tmp_path: Path) -> None:
    own = tmp_path / "own"
    made = generated(str(own), DOMAINS, AMOUNT, tmp_path / "below")
    assert made.root.parent == tmp_path / "below"
    assert not list(tmp_path.glob("own*"))


def test_domains_with_names_of_folders_keep_them(tmp_path: Path) -> None:
    made = generated("pacs", ("art_painting", "Real World"), AMOUNT, tmp_path)
    assert {file.partition("/")[0] for file in made.files} == {"art_painting", "Real World"}
