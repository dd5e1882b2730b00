"""Checking a dataset."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from styleshift.data.catalog.folder import Folder
from styleshift.data.catalog.pacs import PACS
from styleshift.data.catalog.table import Table
from styleshift.data.checking import Problem, check
from styleshift.data.domains import Domains
from styleshift.data.facts import Facts
from styleshift.data.layouts import Names
from styleshift.data.layouts import tree as tree_of
from styleshift.data.manifests import Manifest, digest_of


@dataclass(frozen=True)
class Counted:
    """The small tree as a dataset whose counts are known."""

    facts: ClassVar[Facts] = Facts(
        title="Toy",
        names=Names(domains=("ink", "oil")),
        class_count=3,
        image_counts={"ink": 6, "oil": 7},
        dropped={"ink/ant/000.png": "upside down"},
    )

    def load(self, root: Path) -> Domains:
        return tree_of(root, "Toy", self.facts.names)


@dataclass(frozen=True)
class Known(Counted):
    """The small tree as a dataset whose every image is known."""

    known: Manifest

    def found(self, root: Path) -> Domains:
        return self.load(root)

    def manifest(self) -> Manifest:
        return self.known


@pytest.fixture
def whole(tmp_path: Path, make_tree: Callable[..., Path]) -> Path:
    """The small tree with the zebra that `ink` lacks."""
    counts = {"ink": {"ant": 3, "bee": 2, "zebra": 1}, "oil": {"ant": 2, "bee": 4, "zebra": 1}}
    return make_tree(tmp_path / "whole", counts)


@pytest.fixture
def known(whole: Path) -> Known:
    small = Folder().load(whole)
    digests = tuple(digest_of(small.path(index)) for index in range(len(small)))
    return Known(Manifest(small.files, digests, np.zeros((len(small), 3), dtype=np.int64)))


def test_a_sound_tree_is_sound(tree: Path) -> None:
    report = check(Folder(), tree)
    assert report.sound
    assert report.problems == ()


def test_a_class_missing_in_a_domain_of_ones_own_is_noted_and_no_problem(tree: Path) -> None:
    report = check(Folder(), tree)
    assert "ink has no zebra" in report.notes
    assert report.sound


def test_a_class_missing_in_a_domain_of_a_known_set_is_a_problem(whole: Path) -> None:
    # as many images as there should be
    (whole / "ink/zebra/000.png").rename(whole / "ink/ant/900.png")
    report = check(Counted(), whole)
    assert report.problems == (Problem("ink", "has no zebra"),)
    assert "ink has no zebra" not in report.notes


def test_each_damaged_file_is_a_problem(tree: Path) -> None:
    (tree / "ink/ant/001.png").write_bytes((tree / "ink/ant/001.png").read_bytes()[:99])
    (tree / "oil/bee/003.png").write_text("no image")
    problems = check(Folder(), tree).problems
    assert [problem.where for problem in problems] == ["ink/ant/001.png", "oil/bee/003.png"]
    assert all(problem.what.startswith("cannot be decoded") for problem in problems)


def test_a_file_missing_of_a_table_is_a_problem(tree: Path) -> None:
    (tree / "mine.csv").write_text("path,class,domain\nink/ant/000.png,ant,ink\nink/ant/900.png,ant,ink\n")
    assert check(Table(), tree / "mine.csv").problems == (Problem("ink/ant/900.png", "is missing"),)


def test_right_counts_are_no_problem(whole: Path) -> None:
    assert check(Counted(), whole).sound


def test_a_domain_with_too_few_images_is_a_problem(whole: Path) -> None:
    (whole / "oil/bee/000.png").unlink()
    assert check(Counted(), whole).problems == (Problem("oil", "has 6 images; Toy has 7 there"),)


def test_too_few_classes_are_a_problem(whole: Path) -> None:
    for domain in ("ink", "oil"):
        (whole / domain / "zebra").rename(whole / domain / "none")
        (whole / domain / "none/000.png").rename(whole / domain / "ant/900.png")
    assert check(Counted(), whole).problems == (Problem("Toy", "has 3 classes; 2 are there"),)


def test_a_dropped_image_is_said_by_name(whole: Path) -> None:
    assert "ink/ant/000.png is upside down; it is left out when the dataset is used" in check(Counted(), whole).notes


def test_without_digests_it_says_that_only_counts_were_compared(whole: Path, known: Known) -> None:
    note = "compared by counts; no digests of the images are known"
    assert note in check(Counted(), whole).notes
    assert note not in check(known, whole).notes


def test_all_published_pixels_are_no_problem(whole: Path, known: Known) -> None:
    assert check(known, whole).sound


def test_a_single_changed_pixel_is_a_problem(whole: Path, known: Known) -> None:
    path = whole / "ink/bee/001.png"
    pixels = np.array(Image.open(path))
    pixels[3, 4, 1] ^= 1
    Image.fromarray(pixels).save(path)
    assert check(known, whole).problems == (Problem("ink/bee/001.png", "has other pixels than the published image"),)


def test_a_missing_and_an_unknown_image_are_problems(whole: Path, known: Known) -> None:
    (whole / "ink/bee/001.png").rename(whole / "ink/bee/002.png")
    assert check(known, whole).problems == (
        Problem("ink/bee/001.png", "is missing"),
        Problem("ink/bee/002.png", "is not an image of Toy"),
    )


def test_where_every_image_is_known_a_missing_one_is_not_counted_again(whole: Path, known: Known) -> None:
    (whole / "ink/bee/001.png").unlink()
    assert check(known, whole).problems == (Problem("ink/bee/001.png", "is missing"),)


def test_it_reports_its_progress(tree: Path) -> None:
    reports: list[tuple[int, int]] = []
    check(Folder(), tree, lambda done, total: reports.append((done, total)))
    assert reports == [(done, 12) for done in range(1, 13)]


def test_a_report_can_be_read_by_a_program(tree: Path) -> None:
    facts = check(Folder(), tree).facts()
    assert facts["counts"] == {"ink": {"ant": 3, "bee": 2, "zebra": 0}, "oil": {"ant": 2, "bee": 4, "zebra": 1}}
    assert (facts["images"], facts["sound"], facts["problems"]) == (12, True, [])


@pytest.mark.pacs
def test_a_real_class_with_a_changed_and_a_missing_image_is_found_out(pacs_root: Path, tmp_path: Path) -> None:
    for domain in PACS.facts.names.domains:
        (tmp_path / domain / "house").mkdir(parents=True)
    for path in sorted((pacs_root / "sketch" / "house").iterdir())[1:]:
        (tmp_path / "sketch" / "house" / path.name).write_bytes(path.read_bytes())
    changed = sorted((tmp_path / "sketch" / "house").iterdir())[0]
    Image.open(changed).rotate(90).save(changed)
    problems = check(PACS(), tmp_path).problems
    assert sum(problem.what == "is missing" for problem in problems) == 9991 - 79
    assert Problem(f"sketch/house/{changed.name}", "has other pixels than the published image") in problems
