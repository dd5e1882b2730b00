"""What a row's method sets in a training: `mixstyle+sb`, `dsu+undersampling`, `mixstyle+sb+random-selection`.

The first word is a style augmentation (or `baseline`) and `+sb` is style balancing, as everywhere; what follows is what
the paper's own comparisons add.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from styleshift.training.settings import METHODS, Settings, method_of

_ADDED: Mapping[str, Mapping[str, Any]] = {
    "oversampling": {"sampling": "oversample"},
    "undersampling": {"sampling": "undersample"},
    "reweighting": {"reweight": "effective"},
    "random-selection": {"selection": "random"},
}


def training_of(name: str) -> dict[str, Any]:
    """The fields of `training.settings.Settings` that the method `name` sets. KeyError, with near names, if unknown."""
    words = name.split("+")
    known = 2 if words[1:2] == ["sb"] else 1
    method = method_of("+".join(words[:known]))
    values: dict[str, Any] = {"augment": method.augment, "balance": method.balance}
    for word in words[known:]:
        if word not in _ADDED:
            near = difflib.get_close_matches(word, _ADDED) or _ADDED
            raise KeyError(f"no method {name!r}: nothing is called {word!r}; did you mean one of {', '.join(near)}?")
        values.update(_ADDED[word])
    return values


def settings_of(name: str) -> dict[str, Any]:
    """Everything in a training's settings by which methods differ, as the method `name` has it."""
    given = training_of(name)
    defaults = {setting: getattr(Settings, setting) for values in _ADDED.values() for setting in values}
    return {**defaults, **given}


def method_names() -> tuple[str, ...]:
    """The methods that the paper's main tables train."""
    return tuple(METHODS)
