"""Settings say what was wrong with them, and survive JSON."""

import json
from collections.abc import Callable

import pytest

from styleshift.training.settings import METHODS, Method, Settings, method_of


def test_a_method_with_sb_balances() -> None:
    assert method_of("mixstyle+sb") == Method("mixstyle", balance=True)
    assert method_of("baseline") == Method(None, balance=False)


def test_there_are_eight_methods() -> None:
    assert sorted(METHODS) == sorted(
        name + suffix for name in ("baseline", "mixstyle", "efdmix", "dsu") for suffix in ("", "+sb")
    )


def test_an_unknown_method_is_answered_with_near_ones() -> None:
    with pytest.raises(KeyError, match=r"'mixstile'; did you mean one of .*'mixstyle'"):
        method_of("mixstile")


def test_plain_settings_come_back_from_json() -> None:
    settings = Settings(points=("layer1", "layer2"), augment="dsu", seed=3)
    assert Settings.of(json.loads(json.dumps(settings.plain()))) == settings


def test_an_unknown_setting_is_answered_with_near_ones() -> None:
    with pytest.raises(KeyError, match=r"no setting 'epoch'; did you mean one of .*'epochs'"):
        Settings.of({"epoch": 3})


WRONG = {
    "schedule": ("linear", "schedule is one of cosine-step, cosine-epoch; got 'linear'"),
    "augment": ("cutmix", "augment is one of mixstyle, efdmix, dsu, None; got 'cutmix'"),
    "p": (1.5, "p lies between 0 and 1; got 1.5"),
    "epochs": (0, "epochs lies between 1 and inf; got 0"),
    "learning_rate": (float("nan"), "learning_rate lies between 0 and inf; got nan"),
    "points": ((), "points is empty: name at least one module, or leave it out for the published ones"),
    "momentum": (0.0, "nesterov needs momentum above 0; got 0. Set nesterov to false or give momentum"),
}


def test_a_wrong_value_is_named_with_what_is_right(plain_python: Callable[[str], str]) -> None:
    # in a process of its own: the tests' type checks would say it before we do
    code = """
from styleshift.training.settings import Settings
nan = float("nan")
for name, value in CASES:
    try:
        Settings(**{name: value})
    except ValueError as error:
        print(error)
"""
    said = plain_python(code.replace("CASES", repr([(name, value) for name, (value, _) in WRONG.items()])))
    assert said.splitlines() == [message for _, message in WRONG.values()]
