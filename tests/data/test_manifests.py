"""Manifests: names, pixel digests, published lists."""

import hashlib
from pathlib import Path

import numpy as np
from PIL import Image

from styleshift.data.domains import Domains
from styleshift.data.manifests import digest_of, listed, manifest_of, pixel_digest, read_manifest


def write_lists(folder: Path, **lists: list[str]) -> Path:
    folder.mkdir()
    for name, rows in lists.items():
        (folder / f"{name}_kfold.txt").write_text("".join(f"{row}\n" for row in rows))
    return folder


def test_the_digest_is_the_beginning_of_a_sha256_over_rgb() -> None:
    pixels = np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8)
    assert pixel_digest(pixels) == hashlib.sha256(bytes([1, 2, 3, 4, 5, 6])).hexdigest()[:32]


def test_the_digest_of_a_view_is_that_of_its_copy() -> None:
    pixels = np.arange(60, dtype=np.uint8).reshape(5, 4, 3)[::2]
    assert pixel_digest(pixels) == pixel_digest(pixels.copy())


def test_a_file_coded_again_without_loss_is_the_same_image(small: Domains, tmp_path: Path) -> None:
    Image.open(small.path(0)).save(tmp_path / "again.bmp")
    assert digest_of(tmp_path / "again.bmp") == digest_of(small.path(0))


def test_lists_count_how_often_each_file_is_named(tmp_path: Path) -> None:
    folder = write_lists(tmp_path / "lists", a_train=["a/x/1.jpg 0", "a/x/2.jpg 1"], a_crossval=["a/x/3.jpg 1"] * 2)
    assert listed(["a/x/1.jpg", "a/x/2.jpg", "a/x/3.jpg"], folder).tolist() == [[1, 0, 0], [1, 0, 0], [0, 2, 0]]


def test_a_manifest_comes_back_from_its_file(small: Domains, tmp_path: Path) -> None:
    made = manifest_of(small, write_lists(tmp_path / "lists", ink_test=[f"{file} 1" for file in small.files[:2]]))
    made.save(tmp_path / "manifest.gz")
    read = read_manifest(tmp_path / "manifest.gz")
    assert read.files == small.files
    assert read.digests == tuple(digest_of(small.path(index)) for index in range(len(small)))
    assert read.lists.sum(axis=0).tolist() == [0, 0, 2]


def test_the_same_manifest_makes_the_same_bytes(small: Domains, tmp_path: Path) -> None:
    made = manifest_of(small, write_lists(tmp_path / "lists"))
    made.save(tmp_path / "one.gz")
    made.save(tmp_path / "two.gz")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
