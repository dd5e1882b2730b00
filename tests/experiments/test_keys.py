"""Keys: equal for the same run, different for anything that changes a result."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styleshift.experiments.keys import cell_of, hash_of, key_of, protocol_of
from styleshift.experiments.planning import Run

PLAIN = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.none(), max_size=5)


@given(PLAIN)
def test_a_hash_does_not_depend_on_the_order_of_names(values: dict[str, Any]) -> None:
    assert hash_of(values) == hash_of(dict(reversed(values.items())))


@given(PLAIN, PLAIN)
def test_a_hash_tells_different_values_apart(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert (hash_of(a) == hash_of(b)) == (a == b)


def changed(facts: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    twin = copy.deepcopy(facts)
    where = twin if name in twin else twin["training"]
    assert name in where
    assert where[name] != value
    where[name] = value
    return twin


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 99),
        ("domain", "photo"),
        ("scenario", "long-tailed:64"),
        ("split", "random"),
        ("epochs", 9),
        ("seed", 7),
        ("balance", True),
        ("precision", "float32"),
    ],
)
def test_a_cell_changes_with_anything_that_changes_a_result(small_runs: list[Run], name: str, value: object) -> None:
    facts = small_runs[0].facts
    assert cell_of(facts) != cell_of(changed(facts, name, value))


@pytest.mark.parametrize(("name", "value"), [("seed", 7), ("balance", True), ("augment", None), ("domain", "photo")])
def test_a_protocol_is_the_same_for_all_cells_of_a_table(small_runs: list[Run], name: str, value: object) -> None:
    facts = small_runs[0].facts
    assert protocol_of(facts) == protocol_of(changed(facts, name, value))


@pytest.mark.parametrize(("name", "value"), [("version", 99), ("split", "random"), ("epochs", 9), ("transform", "tsb")])
def test_a_protocol_changes_with_what_a_table_shares(small_runs: list[Run], name: str, value: object) -> None:
    facts = small_runs[0].facts
    assert protocol_of(facts) != protocol_of(changed(facts, name, value))


def test_a_key_changes_with_images_and_first_weights(small_runs: list[Run]) -> None:
    facts = small_runs[0].facts
    keys = {key_of(facts, "a", "b"), key_of(facts, "a", "c"), key_of(facts, "b", "b"), key_of(facts, "a", None)}
    assert len(keys) == 4
