"""Options that several commands share read the same everywhere."""

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize("command", ["run", "table", "recipes"])
def test_the_store_is_explained_wherever_it_is_asked_for(styleshift: Command, command: str) -> None:
    words = " ".join(styleshift(command, "--help").out.split())
    assert "--store" in words
    assert "$STYLESHIFT_STORE, else ./runs" in words


@pytest.mark.parametrize("command", ["fit", "predict", "explain"])
def test_a_model_is_explained_wherever_it_is_asked_for(styleshift: Command, command: str) -> None:
    words = " ".join(styleshift(command, "--help").out.split())
    assert "A folder that train or run wrote" in words
    assert "--arch" in words
