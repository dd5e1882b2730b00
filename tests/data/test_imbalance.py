"""Imbalanced training sets."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from styleshift.data.domains import Domains
from styleshift.data.imbalance import (
    ClassImbalance,
    DataImbalance,
    LongTail,
    Original,
    Scenario,
    load_indices,
    save_indices,
    scenario,
)


def dataset_of(counts: list[list[int]]) -> Domains:
    """A domain for each row and a class for each column, with these many images; shuffled."""
    table = np.array(counts)
    domains, classes = (np.repeat(index.ravel(), table.ravel()) for index in np.indices(table.shape))
    order = np.random.default_rng(0).permutation(len(domains))
    names = tuple(f"c{c}" for c in range(table.shape[1])), tuple(f"d{d}" for d in range(table.shape[0]))
    return Domains("toy", Path(), tuple(f"{i}.png" for i in order), classes[order], domains[order], *names)


def kept_counts(made: Scenario, counts: list[list[int]], seed: int = 0) -> NDArray[np.int64]:
    dataset = dataset_of(counts)
    return dataset.only(made.apply(dataset, np.arange(len(dataset)), seed)).counts()


TABLES = st.integers(1, 5).flatmap(
    lambda classes: st.lists(st.lists(st.integers(0, 20), min_size=classes, max_size=classes), min_size=1, max_size=4)
)
EVERY = st.sampled_from(
    [Original(), DataImbalance(0.8), DataImbalance(0.35), ClassImbalance(None), LongTail(64), LongTail(3)]
)


@settings(max_examples=80, deadline=None)
@given(TABLES, EVERY, st.integers(0, 2**31), st.data())
def test_what_stays_was_there_in_the_same_order(
    counts: list[list[int]], made: Scenario, seed: int, data: st.DataObject
) -> None:
    dataset = dataset_of(counts)
    indices = np.array(data.draw(st.permutations(range(len(dataset)))), dtype=np.int64)[: max(1, len(dataset) // 2)]
    kept = made.apply(dataset, indices, seed) if len(indices) else indices
    positions = [indices.tolist().index(index) for index in kept]
    assert positions == sorted(set(positions))


@settings(max_examples=60, deadline=None)
@given(TABLES, EVERY, st.integers(0, 2**31))
def test_the_same_seed_keeps_the_same(counts: list[list[int]], made: Scenario, seed: int) -> None:
    dataset = dataset_of(counts)
    everything = np.arange(len(dataset))
    if len(dataset):
        assert made.apply(dataset, everything, seed).tolist() == made.apply(dataset, everything, seed).tolist()


@settings(max_examples=80, deadline=None)
@given(TABLES, st.floats(0, 0.99), st.integers(0, 2**31))
def test_data_imbalance_spares_the_largest_and_thins_the_others_evenly(
    counts: list[list[int]], removed: float, seed: int
) -> None:
    kept, table = kept_counts(DataImbalance(removed), counts, seed), np.array(counts)
    largest = table.sum(axis=1).argmax()
    for domain, row in enumerate(table):
        if domain == largest:
            assert kept[domain].tolist() == row.tolist()
        else:
            assert kept[domain].sum() == round((1 - removed) * row.sum())
            assert (np.abs(kept[domain] - (1 - removed) * row) <= 1.5).all()


def test_data_imbalance_keeps_a_fifth_of_each_class() -> None:
    assert kept_counts(DataImbalance(0.8), [[10, 20], [30, 30], [5, 15]]).tolist() == [[2, 4], [30, 30], [1, 3]]


def test_data_imbalance_counts_only_what_is_trained_on() -> None:
    dataset = dataset_of([[10], [100]])
    trained = np.flatnonzero((dataset.domains == 0) | (np.cumsum(dataset.domains == 1) <= 5))
    assert dataset.only(DataImbalance(0.8).apply(dataset, trained, 0)).counts().tolist() == [[10], [1]]


@pytest.mark.parametrize("removed", [-0.1, 1.0])
def test_data_imbalance_refuses_a_share_outside_0_to_1(removed: float) -> None:
    with pytest.raises(ValueError, match="0 up to but not 1"):
        DataImbalance(removed)


def test_data_imbalance_of_nothing_removed_is_the_original() -> None:
    assert kept_counts(DataImbalance(0), [[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


def test_class_imbalance_shares_the_classes_of_pacs_3_2_2() -> None:
    kept = kept_counts(ClassImbalance(), [[2] * 7, [3] * 7, [4] * 7])
    assert kept.tolist() == [[2, 2, 2, 0, 0, 0, 0], [0, 0, 0, 3, 3, 0, 0], [0, 0, 0, 0, 0, 4, 4]]


def test_class_imbalance_shares_five_classes_2_2_1_by_itself() -> None:
    kept = kept_counts(ClassImbalance(None), [[1] * 5, [1] * 5, [1] * 5])
    assert kept.tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]


def test_class_imbalance_passes_over_domains_that_are_not_trained_on() -> None:
    kept = kept_counts(ClassImbalance((1, 2)), [[1] * 3, [0] * 3, [1] * 3])
    assert kept.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]


@given(st.integers(0, 1000))
def test_class_imbalance_in_another_order_keeps_each_class_in_one_source(order: int) -> None:
    kept = kept_counts(ClassImbalance((3, 2, 2), order), [[1] * 7] * 3)
    assert kept.sum(axis=0).tolist() == [1] * 7
    assert kept.sum(axis=1).tolist() == [3, 2, 2]


@pytest.mark.parametrize("shares", [(3, 2), (3, 3, 2), (7,)])
def test_class_imbalance_refuses_shares_that_do_not_add_up(shares: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"3 sources and add up to 7 classes.*\(3, 2, 2\)"):
        kept_counts(ClassImbalance(shares), [[1] * 7] * 3)


def test_long_tail_falls_from_the_largest_class_to_a_64th() -> None:
    kept = kept_counts(LongTail(64), [[640] * 4, [64] * 4])
    assert kept.tolist() == [[640, 160, 40, 10], [64, 16, 4, 1]]


def test_long_tail_takes_no_more_than_there_is() -> None:
    assert kept_counts(LongTail(4), [[10, 100, 30]]).tolist() == [[10, 50, 25]]


def test_long_tail_leaves_one_image_where_there_was_one() -> None:
    assert kept_counts(LongTail(64), [[3, 3, 3]])[0, 2] == 1


def test_long_tail_refuses_a_ratio_under_1() -> None:
    with pytest.raises(ValueError, match="1 or more; got 0"):
        LongTail(0.5)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("original", Original()),
        ("data-imbalanced", DataImbalance(0.8)),
        ("data-imbalanced:0.5", DataImbalance(0.5)),
        ("class-imbalanced", ClassImbalance(None)),
        ("class-imbalanced:2/2/1", ClassImbalance((2, 2, 1))),
        ("class-imbalanced:3/2/2,order=7", ClassImbalance((3, 2, 2), order=7)),
        ("long-tailed", LongTail(64)),
        ("long-tailed:100", LongTail(100)),
    ],
)
def test_a_scenario_is_known_by_name_and_setting(name: str, made: Scenario) -> None:
    assert scenario(name) == made


@pytest.mark.parametrize("name", ["data-imbalanced:much", "data-imbalanced:1", "class-imbalanced:3/x", "long-tailed:0"])
def test_a_setting_that_makes_no_sense_is_refused_with_the_scenario(name: str) -> None:
    with pytest.raises(ValueError, match=f"scenario '{name}'"):
        scenario(name)


@pytest.mark.parametrize("name", ["imbalanced", "original:2", ""])
def test_an_unknown_scenario_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(KeyError, match="it is one of original"):
        scenario(name)


def test_chosen_indices_come_back_from_their_file(tmp_path: Path) -> None:
    dataset, path = dataset_of([[3, 4], [5, 6]]), tmp_path / "runs" / "chosen.json"
    save_indices(path, dataset, np.array([7, 0, 3]), "by hand")
    assert load_indices(path, dataset).tolist() == [7, 0, 3]


def test_chosen_indices_follow_the_files_into_another_order(tmp_path: Path) -> None:
    dataset, path = dataset_of([[3, 4], [5, 6]]), tmp_path / "chosen.json"
    save_indices(path, dataset, np.array([7, 0, 3]), "by hand")
    backwards = dataset.only(np.arange(len(dataset))[::-1])
    assert load_indices(path, backwards).tolist() == [len(dataset) - 1 - index for index in (7, 0, 3)]


def test_an_index_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    dataset, path = dataset_of([[3, 4]]), tmp_path / "chosen.json"
    save_indices(path, dataset, np.array([0, 1]), "by hand")
    path.write_text(path.read_text().replace(dataset.files[1], dataset.files[2]))
    with pytest.raises(ValueError, match="does not match its checksum"):
        load_indices(path, dataset)


def test_an_index_file_of_other_images_is_refused(tmp_path: Path) -> None:
    dataset, path = dataset_of([[3, 4]]), tmp_path / "chosen.json"
    save_indices(path, dataset, np.array([0, 1]), "by hand")
    with pytest.raises(ValueError, match="1 of them are not in this toy"):
        load_indices(path, dataset.only([1, 2]))


@pytest.mark.parametrize("content", ["", "[]", '{"files": []}'])
def test_what_is_no_index_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "chosen.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="is no index file"):
        load_indices(path, dataset_of([[3, 4]]))
