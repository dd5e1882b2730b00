"""The figure of streams."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from styleshift.adaptation.wrapping import Sees
from styleshift.training.stream_figures import draw
from styleshift.training.streams import Moment, Played


def played(method: str, order: str, episodic: bool = False) -> Played:
    moments = tuple(Moment(seen, 0.5, seen / 100, 0.5) for seen in range(1, 50))
    return Played(method, order, episodic, Sees(), 50, 0.5, {"a": 0.5}, moments)


ALL = [played("none", "iid"), played("tent", "iid"), played("tent", "long", episodic=True)]


@pytest.mark.parametrize(("ending", "opens"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_it_is_a_file_of_its_kind(ending: str, opens: bytes, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(ALL, tmp_path / f"streams{ending}")
    assert (tmp_path / f"streams{ending}").read_bytes().startswith(opens)


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_the_same_numbers_give_the_same_file(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one", "other"):
        draw(ALL, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"other{ending}").read_bytes()


def test_it_names_every_method_and_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    draw(ALL, tmp_path / "streams.svg")
    text = (tmp_path / "streams.svg").read_text()
    assert all(f">{word}<" in text for word in ("none", "tent", "tent, episodic", "iid", "long", "samples seen"))


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a \.png or \.svg file; got .*streams\.txt"):
        draw(ALL, tmp_path / "streams.txt")


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got none"):
        draw([], tmp_path / "streams.svg")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = builtins.__import__

    def without(name: str, *rest: Any, **further: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError("not here")
        return find(name, *rest, **further)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="drawing streams needs matplotlib: pip install matplotlib"):
        draw(ALL, tmp_path / "streams.svg")
