"""What the report needs beyond the core."""

import sys

import pytest

from styleshift.report import extras


def test_a_missing_jinja2_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError, match=r"^an HTML page needs jinja2: pip install 'styleshift\[report\]'$"):
        extras.jinja2()


def test_it_gives_jinja2() -> None:
    assert extras.jinja2().__name__ == "jinja2"


@pytest.mark.parametrize("there", [True, False])
def test_tsne_is_there_where_scikit_learn_is(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr(extras, "find_spec", {"sklearn": object() if there else None}.get)
    assert extras.has_tsne() is there
