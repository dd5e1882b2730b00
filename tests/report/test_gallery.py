"""Kinds of images, and some of each."""

import base64
from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from styleshift.report.gallery import SIDE, Group, Picture, Said, grouped, score_words, spread_over, thumbnail


def picture(index: int) -> Picture:
    return Picture(f"{index}.png", "data:,", "cat", "dog", 0.5, "cat", 0.6, 3.5, True, "photo")


def kinds(said: list[Said]) -> dict[str, int]:
    return {group.name: group.of for group in grouped(said, picture)}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (Said("cat", "dog", "cat", True), "wrong → right"),
        (Said("cat", "cat", "dog", True), "right → wrong"),
        (Said("cat", "cat", "cat", True), "right before and after"),
        (Said("cat", "cat", "cat", False), "right before and after"),
        (Said("cat", "dog", "cow", True), "wrong before and after"),
        (Said(None, "cat", "dog", True), "the class changed"),
        (Said(None, "cat", "cat", True), "shifted, the class stayed"),
        (Said(None, "cat", "cat", False), "near the sources"),
    ],
)
def test_an_image_has_one_kind(said: Said, kind: str) -> None:
    assert kinds([said]) == {kind: 1}


def test_what_the_shift_breaks_stands_beside_what_it_mends_with_its_whole_count() -> None:
    said = [Said("cat", "dog", "cat", True)] * 3 + [Said("cat", "cat", "dog", True)] * 25
    mended, broken = grouped(said, picture, most=10)
    assert (mended.of, len(mended.pictures)) == (3, 3)
    assert (broken.of, len(broken.pictures)) == (25, 10)


def test_nothing_gives_no_group() -> None:
    empty: list[Group] = []
    assert grouped([], picture) == empty


@given(st.integers(1, 400), st.integers(1, 40))
def test_a_choice_is_spread_evenly(count: int, most: int) -> None:
    chosen = spread_over(range(count), most)
    steps = {after - before for before, after in pairwise(chosen)}
    assert len(chosen) == min(most, count) == len(set(chosen))
    assert chosen[0] == 0
    assert not steps or max(steps) - min(steps) <= 1


def test_a_score_beyond_all_numbers_is_said_in_words() -> None:
    assert (score_words(3.456), score_words(None)) == ("3.46", "beyond all numbers")


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_thumbnail_is_a_small_jpeg_inside_its_link(mode: str) -> None:
    link = thumbnail(Image.new(mode, (300, 300), 90))
    assert link.startswith("data:image/jpeg;base64,")
    assert Image.open(BytesIO(base64.b64decode(link.partition("base64,")[2]))).size == (SIDE, SIDE)
