"""Domains: the one type every dataset returns."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from styleshift.data.domains import Domains, matching, plain, some_of_each


def of(classes: list[int], domains: list[int], n_classes: int = 3, n_domains: int = 2) -> Domains:
    files = tuple(f"{index}.png" for index in range(len(classes)))
    names = tuple(f"class {index}" for index in range(n_classes)), ("ink", "oil", "pencil")[:n_domains]
    return Domains("toy", Path("toy"), files, np.array(classes), np.array(domains), *names)


def test_it_counts_by_domain_and_class() -> None:
    assert of([0, 0, 2, 1], [0, 0, 0, 1]).counts().tolist() == [[2, 0, 1], [0, 1, 0]]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1), st.data())
def test_a_choice_has_the_labels_of_what_was_chosen(labels: list[tuple[int, int]], data: st.DataObject) -> None:
    dataset = of([class_ for class_, _ in labels], [domain for _, domain in labels])
    chosen = data.draw(st.lists(st.integers(0, len(labels) - 1)))
    part = dataset.only(np.array(chosen, dtype=np.int64))
    assert [(part.files[i], part.classes[i], part.domains[i]) for i in range(len(part))] == [
        (f"{index}.png", *labels[index]) for index in chosen
    ]


def test_a_choice_keeps_the_published_lists_of_its_images() -> None:
    dataset = of([0, 1], [0, 1])
    listed = replace(dataset, lists=np.array([[1, 0, 1], [0, 1, 1]]))
    lists = listed.only([1]).lists
    assert lists is not None
    assert lists.tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(("classes", "domains", "said"), [([3], [0], "0.png has 3"), ([0], [-1], "0.png has -1")])
def test_it_refuses_a_label_outside_its_names(classes: list[int], domains: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        of(classes, domains)


def test_it_accepts_the_last_class_and_the_last_domain() -> None:
    assert of([2], [1]).counts()[1, 2] == 1


def test_it_refuses_fractions_as_labels(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
from pathlib import Path
import numpy as np
from styleshift.data.domains import Domains
try:
    Domains("toy", Path(), ("a",), np.array([0.5]), np.array([0]), ("a",), ("b",))
except TypeError as refusal:
    print(refusal)
""")
    assert said == "toy: classes must be integers, 0..0; got float64.\n"


def test_it_refuses_fewer_labels_than_files() -> None:
    with pytest.raises(ValueError, match=r"one number a file \(2\)"):
        Domains("toy", Path(), ("a", "b"), np.array([0]), np.array([0, 0]), ("a",), ("b",))


def test_it_refuses_lists_of_another_length() -> None:
    with pytest.raises(ValueError, match=r"\[1, 3\]"):
        Domains("toy", Path(), ("a",), np.array([0]), np.array([0]), ("a",), ("b",), np.zeros((2, 3), dtype=np.int64))


def test_some_of_each_domain_are_drawn_whatever_the_files_order() -> None:
    domains = np.array([0] * 100 + [1] * 3)
    drawn = some_of_each(domains, 10, seed=1)
    assert np.bincount(domains[drawn]).tolist() == [10, 3]
    assert drawn.tolist() == sorted(drawn.tolist())
    assert drawn[:10].tolist() != list(range(10))
    assert drawn.tolist() != some_of_each(domains, 10, seed=2).tolist()
    assert some_of_each(domains, None).tolist() == list(range(103))


def test_its_labels_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        of([0], [0]).classes[0] = 1


def test_it_says_where_an_image_is() -> None:
    assert of([0], [0]).path(0) == Path("toy/0.png")


def test_its_table_names_every_class_and_domain_and_adds_up() -> None:
    lines = of([0, 0, 2, 1], [0, 0, 0, 1]).table().splitlines()
    assert [line.split() for line in lines] == [
        ["ink", "oil", "total"],
        ["class", "0", "2", "0", "2"],
        ["class", "1", "0", "1", "1"],
        ["class", "2", "1", "0", "1"],
        ["total", "3", "1", "4"],
    ]


@pytest.mark.parametrize("spelling", ["art_painting", "art", "Art", "Art Painting", "ART-PAINTING", "a"])
def test_a_domain_is_known_by_any_spelling_and_by_its_beginning(spelling: str) -> None:
    assert matching(spelling, ("sketch", "art_painting"), "no domain") == "art_painting"


def test_a_whole_name_beats_a_longer_one_that_begins_so() -> None:
    assert matching("real", ("realistic", "real"), "no domain") == "real"


def test_a_beginning_of_two_names_is_refused_with_both() -> None:
    with pytest.raises(KeyError, match="photo, pencil"):
        matching("p", ("photo", "ink", "pencil"), "no domain")


def test_a_misspelt_domain_is_refused_with_near_names() -> None:
    with pytest.raises(KeyError, match=r"toy has no domain 'pencel'; did you mean one of pencil\?"):
        of([0], [0], n_domains=3).domain("pencel")


def test_no_name_at_all_is_refused() -> None:
    with pytest.raises(KeyError, match="ink, oil"):
        of([0], [0]).domain("")


def test_a_plain_name_has_neither_case_nor_punctuation() -> None:
    assert plain("Real_World-2 ") == "realworld2"
