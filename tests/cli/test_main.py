"""How the command line begins and ends."""

import errno
from collections.abc import Callable
from typing import Any

import pytest

from styleshift.cli.main import is_callers, one_line

Command = Callable[..., Any]


def raised(function: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_it_answers_without_torch(plain_python: Callable[[str], str], asked: str) -> None:
    code = f"""
import sys
from styleshift.cli.main import app
app([{asked!r}], standalone_mode=False)
heavy = [name for name in ("torch", "numpy", "PIL", "pydantic") if name in sys.modules]
print("loaded:", heavy)
"""
    assert plain_python(code).endswith("loaded: []\n")


def test_every_commands_help_comes_without_torch(plain_python: Callable[[str], str]) -> None:
    code = """
import sys
from styleshift.cli.main import app
for name in ("run", "table", "recipes", "train", "fit", "predict", "explain", "data"):
    app([name, "--help"], standalone_mode=False)
print("torch" in sys.modules)
"""
    assert plain_python(code).endswith("False\n")


def test_it_offers_no_command_that_is_not_built(styleshift: Command) -> None:
    for name in ("export", "bench", "compare"):
        assert styleshift(name).status == 2


def test_a_mistake_of_the_callers_is_one_line_and_status_2(styleshift: Command) -> None:
    said = styleshift("table", "pacs-orignal")
    assert said.status == 2
    assert said.out == ""
    assert said.err == "styleshift: no recipe 'pacs-orignal'; did you mean one of pacs-original, pacs-alpha?\n"


def test_traceback_shows_where_it_came_from(styleshift: Command) -> None:
    with pytest.raises(KeyError, match="no recipe"):
        styleshift("--traceback", "table", "pacs-orignal")


def test_an_interrupt_is_status_130(styleshift: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from styleshift.experiments import recipe

    def interrupted(name: str) -> None:
        raise KeyboardInterrupt("stopped here")

    monkeypatch.setattr(recipe, "recipe", interrupted)
    said = styleshift("table", "pacs-original")
    assert said.status == 130
    assert "stopped here" in said.err


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    assert not is_callers(raised(lambda: {}["name"]))
    assert not is_callers(raised(lambda: int("seven")))


def test_a_full_disk_or_a_missing_file_is_the_callers() -> None:
    assert is_callers(OSError(errno.ENOSPC, "No space left on device"))
    assert is_callers(raised(lambda: open("/nowhere/at all").close()))


def test_a_sentence_raised_by_ours_is_the_callers() -> None:
    from styleshift.experiments.recipe import recipe

    assert is_callers(raised(lambda: recipe("none")))


def test_a_message_becomes_one_line() -> None:
    assert one_line(KeyError("no such\n  thing")) == "no such thing"
    assert one_line(ValueError("two\nlines")) == "two lines"


def test_an_unknown_option_is_status_2(styleshift: Command) -> None:
    said = styleshift("run", "pacs-original", "--bogus")
    assert said.status == 2
    assert "--bogus" in said.err


def test_no_command_shows_the_help(styleshift: Command) -> None:
    assert "Commands:" in styleshift().err
