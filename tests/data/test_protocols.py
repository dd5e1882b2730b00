"""Protocols: who trains, who chooses, who is tested."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from styleshift.data.domains import Domains
from styleshift.data.protocols import SPLITS, leave_one_domain_out, single_source


def dataset_of(domains: list[int], lists: list[list[int]] | None = None) -> Domains:
    files = tuple(f"{index}.png" for index in range(len(domains)))
    rows = np.array(lists if lists is not None else [[1, 0, 1]] * len(domains), dtype=np.int64).reshape(-1, 3)
    names = ("ink", "oil", "pencil")
    return Domains("toy", Path(), files, np.zeros(len(domains), np.int64), np.array(domains), ("ant",), names, rows)


TEN_EACH = dataset_of([0] * 10 + [1] * 10 + [2] * 10)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=60),
    st.sampled_from(("ink", "oil", "pencil")),
    st.sampled_from(SPLITS),
    st.integers(0, 2**31),
    st.booleans(),
)
def test_no_image_of_a_target_trains_or_chooses(
    domains: list[int], name: str, split: str, seed: int, alone: bool
) -> None:
    dataset = dataset_of(domains)
    drawn = (single_source if alone else leave_one_domain_out)(dataset, name, split, seed)
    seen = np.concatenate((drawn.train, drawn.validation))
    assert not np.isin(dataset.domains[seen], drawn.targets).any()
    assert np.isin(dataset.domains[drawn.test], drawn.targets).all()
    assert set(drawn.sources) | set(drawn.targets) == {0, 1, 2}


@given(st.integers(0, 2**31), st.sampled_from(("domainbed", "random")))
def test_train_and_validation_share_out_the_sources(seed: int, split: str) -> None:
    drawn = leave_one_domain_out(TEN_EACH, "ink", split, seed)
    assert sorted(np.concatenate((drawn.train, drawn.validation))) == list(range(10, 30))


def test_domainbed_validates_on_a_fifth_of_each_source_and_tests_on_four_fifths_of_the_target() -> None:
    drawn = leave_one_domain_out(TEN_EACH, "ink", "domainbed", 0)
    assert np.bincount(TEN_EACH.domains[drawn.validation], minlength=3).tolist() == [0, 2, 2]
    assert len(drawn.test) == 8


def test_random_validates_on_a_tenth_and_tests_on_the_whole_target() -> None:
    drawn = leave_one_domain_out(TEN_EACH, "ink", "random", 0)
    assert np.bincount(TEN_EACH.domains[drawn.validation], minlength=3).tolist() == [0, 1, 1]
    assert drawn.test.tolist() == list(range(10))


def test_official_takes_the_published_lists() -> None:
    dataset = dataset_of([0, 0, 1, 1, 2], [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 1], [1, 0, 1]])
    drawn = leave_one_domain_out(dataset, "oil", "official")
    assert (drawn.train.tolist(), drawn.validation.tolist(), drawn.test.tolist()) == ([0, 4], [1], [3])


def test_official_counts_an_image_as_often_as_the_list_names_it() -> None:
    drawn = leave_one_domain_out(dataset_of([0, 1], [[0, 2, 1], [1, 0, 1]]), "oil", "official")
    assert drawn.validation.tolist() == [0, 0]


def test_another_seed_draws_another_split() -> None:
    assert leave_one_domain_out(TEN_EACH, "ink", "random", 0).validation.tolist() != (
        leave_one_domain_out(TEN_EACH, "ink", "random", 1).validation.tolist()
    )


def test_a_source_is_split_alike_whatever_the_target_is() -> None:
    splits = [leave_one_domain_out(TEN_EACH, target, "domainbed", 3).validation for target in ("ink", "oil")]
    pencil = [part[TEN_EACH.domains[part] == 2].tolist() for part in splits]
    assert pencil[0] == pencil[1]


def test_single_source_is_tested_on_all_others() -> None:
    drawn = single_source(TEN_EACH, "pen", "random", 0)
    assert drawn.sources == (2,)
    assert drawn.targets == (0, 1)
    assert drawn.test.tolist() == list(range(20))


def test_official_needs_published_lists() -> None:
    bare = replace(TEN_EACH, lists=None)
    with pytest.raises(ValueError, match='no "official" split; take one of domainbed, random'):
        leave_one_domain_out(bare, "ink", "official")


def test_an_unknown_split_is_refused_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="did you mean domainbed"):
        leave_one_domain_out(TEN_EACH, "ink", "domain-bed")


def test_one_domain_alone_cannot_be_left_out() -> None:
    alone = Domains("toy", Path(), ("a",), np.array([0]), np.array([0]), ("ant",), ("ink",))
    with pytest.raises(ValueError, match="a source and a target are needed"):
        leave_one_domain_out(alone, "ink", "random")
