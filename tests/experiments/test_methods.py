"""What a method's name sets in a training."""

import pytest

from styleshift.experiments.methods import training_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("baseline", {"augment": None, "balance": False}),
        ("mixstyle+sb", {"augment": "mixstyle", "balance": True}),
        ("dsu+undersampling", {"augment": "dsu", "balance": False, "sampling": "undersample"}),
        ("dsu+sb+oversampling", {"augment": "dsu", "balance": True, "sampling": "oversample"}),
        ("dsu+reweighting", {"augment": "dsu", "balance": False, "reweight": "effective"}),
        ("mixstyle+sb+random-selection", {"augment": "mixstyle", "balance": True, "selection": "random"}),
    ],
)
def test_it_sets_what_its_words_say(name: str, expected: dict[str, object]) -> None:
    assert training_of(name) == expected


@pytest.mark.parametrize(("name", "near"), [("mixstile", "mixstyle"), ("dsu+undersample", "undersampling")])
def test_it_names_near_words_for_an_unknown_one(name: str, near: str) -> None:
    with pytest.raises(KeyError, match=near):
        training_of(name)
