"""PACS: its names, its published lists, its one bad image."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from styleshift.data.catalog.pacs import PACS
from styleshift.data.domains import Domains
from styleshift.data.manifests import digest_of, manifest_of
from styleshift.data.protocols import leave_one_domain_out

BAD = "sketch/dog/n02103406_4068-1.png"
Touch = Callable[[Iterable[str]], Path]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PACS with all of its file names, and nothing in the files."""
    root = tmp_path_factory.mktemp("pacs")
    for file in PACS().manifest().files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


@pytest.fixture(scope="module")
def pacs(whole: Path) -> Domains:
    return PACS().load(whole)


def test_it_has_all_images_but_the_bad_one(pacs: Domains) -> None:
    counts = dict(zip(pacs.domain_names, pacs.counts().sum(axis=1).tolist(), strict=True))
    assert counts == {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3928}
    assert BAD not in pacs.files


def test_it_says_which_image_it_left_out(whole: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        PACS().load(whole)
    assert f"left out {BAD} (a drawing of the word ERROR)" in caplog.text


@pytest.mark.parametrize(
    ("domain", "train", "validation", "test"),
    [
        ("art_painting", 1840, 208, 2048),
        ("cartoon", 2107, 237, 2344),
        ("photo", 1499, 171, 1670),
        ("sketch", 3530, 398, 3928),
    ],
)
def test_its_published_lists_have_these_lengths(
    pacs: Domains, domain: str, train: int, validation: int, test: int
) -> None:
    assert pacs.lists is not None
    of_domain = pacs.lists[pacs.domains == pacs.domain(domain)]
    assert of_domain.sum(axis=0).tolist() == [train, validation, test]


def test_one_image_is_validated_twice_and_another_is_only_tested(pacs: Domains) -> None:
    assert pacs.lists is not None
    rows = {file: row.tolist() for file, row in zip(pacs.files, pacs.lists, strict=True)}
    assert rows["art_painting/dog/pic_248.jpg"] == [0, 2, 1]
    assert rows["art_painting/dog/pic_249.jpg"] == [0, 0, 1]


def test_every_other_image_is_either_trained_on_or_validated(pacs: Domains) -> None:
    assert pacs.lists is not None
    odd = np.flatnonzero(pacs.lists[:, :2].sum(axis=1) != 1)
    assert [pacs.files[index] for index in odd] == ["art_painting/dog/pic_248.jpg", "art_painting/dog/pic_249.jpg"]


def test_classes_are_the_folders_not_the_lists_numbers(pacs: Domains) -> None:
    index = pacs.files.index("art_painting/dog/pic_225.jpg")
    assert pacs.class_names[pacs.classes[index]] == "dog"


def test_official_leaves_out_sketch(pacs: Domains) -> None:
    split = leave_one_domain_out(pacs, "Sketch", "official")
    assert (len(split.train), len(split.validation), len(split.test)) == (1840 + 2107 + 1499, 208 + 237 + 171, 3928)


def test_a_missing_image_is_named_with_how_to_get_it(touch: Touch) -> None:
    files = set(PACS().manifest().files) - {"cartoon/dog/pic_001.jpg"}
    with pytest.raises(ValueError, match=r"lacks 1 of its 9991 images, cartoon/dog/pic_001.jpg .*data get pacs"):
        PACS().load(touch(files))


def test_an_image_more_is_passed_over(whole: Path) -> None:
    extra = whole / "photo" / "dog" / "mine.jpg"
    extra.touch()
    try:
        assert len(PACS().load(whole)) == 9990
    finally:
        extra.unlink()


def test_its_manifest_is_small() -> None:
    import styleshift.data.catalog.pacs as module

    assert Path(module.__file__).with_name("pacs.manifest.gz").stat().st_size < 400_000


def test_its_manifest_tells_every_image_from_every_other() -> None:
    assert len(set(PACS().manifest().digests)) == 9991


@pytest.mark.pacs
def test_some_real_images_have_their_digests(pacs_root: Path) -> None:
    manifest = PACS().manifest()
    for index in range(0, 9991, 400):
        assert digest_of(pacs_root / manifest.files[index]) == manifest.digests[index]


@pytest.mark.pacs
def test_its_manifest_is_made_from_the_real_images_and_lists(pacs_root: Path) -> None:
    manifest = PACS().manifest()
    found = PACS().found(pacs_root)
    assert found.files == manifest.files
    for domain in range(4):
        some = np.flatnonzero(found.domains == domain)[:3]
        made = manifest_of(found.only(some), pacs_root / "nothing")
        assert made.digests == tuple(manifest.digests[index] for index in some)


@pytest.mark.pacs
def test_its_lists_are_those_beside_the_real_images(pacs_root: Path) -> None:
    from styleshift.data.manifests import listed

    manifest = PACS().manifest()
    assert np.array_equal(listed(manifest.files, pacs_root / "splits"), manifest.lists)
