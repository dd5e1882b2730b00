"""The grammar of shifts."""

import pytest

from styleshift.style.shifting import Variant
from styleshift.training.variants import ShiftRow, shift_row


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("none", ShiftRow("none", at=None)),
        ("ts", ShiftRow("ts", "layer2", 3.0)),
        ("ts:alpha=0", ShiftRow("ts:alpha=0", "layer2", 0.0)),
        ("ts:at=layer1", ShiftRow("ts:at=layer1", "layer1", 3.0)),
        ("ts:alpha=2,at=layer1.0", ShiftRow("ts:alpha=2,at=layer1.0", "layer1.0", 2.0)),
        ("ts:all", ShiftRow("ts:all", "layer2", 3.0, Variant(everything=True))),
        ("ts:sampled", ShiftRow("ts:sampled", "layer2", 3.0, Variant(to="sampled"))),
        ("ts:soft", ShiftRow("ts:soft", "layer2", 3.0, Variant(to="soft"))),
        ("ts:partial=0.5", ShiftRow("ts:partial=0.5", "layer2", 3.0, Variant(fraction=0.5))),
        ("ts:all,partial=0.5", ShiftRow("ts:all,partial=0.5", "layer2", 3.0, Variant(everything=True, fraction=0.5))),
    ],
)
def test_a_name_means_a_row(name: str, row: ShiftRow) -> None:
    assert shift_row(name, at="layer2") == row


def test_ts_takes_the_recipes_alpha() -> None:
    assert shift_row("ts", at="layer2", alpha=2.0).alpha == 2.0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tent", "got 'tent'"),
        ("ts:", "got 'ts:'"),
        ("none:alpha=2", "got 'none:alpha=2'"),
        ("ts:alpha=big", "alpha is a number; got 'alpha=big'"),
        ("ts:nearby", "in the shift 'ts:nearby': 'nearby' is neither"),
        ("ts:at=", "'at=' is neither"),
    ],
)
def test_a_wrong_name_is_explained(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        shift_row(name, at="layer2")
