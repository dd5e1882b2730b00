"""`styleshift report`."""

import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report.test_html import Read
from tests.report.test_over_time import written

Command = Callable[..., Any]


def test_it_writes_one_file_and_says_where(styleshift: Command, smoke: Path, tmp_path: Path) -> None:
    said = styleshift("report", "pacs-original", "--store", smoke, "--out", tmp_path / "a" / "page.html")
    assert said.status == 0
    assert said.out == f"{tmp_path / 'a' / 'page.html'}: 1 tables from 1 runs\n"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["page.html"]


def test_without_results_it_still_makes_a_page(styleshift: Command, tmp_path: Path) -> None:
    said = styleshift("report")
    assert said.status == 0
    assert "Nothing has been run yet" in (tmp_path / "runs" / "report.html").read_text()


def test_records_alone_make_a_report(styleshift: Command, smoke: Path, tmp_path: Path) -> None:
    said = styleshift("report", "pacs-original", "--import", smoke / "records", "--out", tmp_path / "page.html")
    assert said.status == 0
    assert "the model is not kept in this store" in (tmp_path / "page.html").read_text()


def test_open_shows_it_in_the_browser(styleshift: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    styleshift("report", "--open")
    assert shown == [(tmp_path / "runs" / "report.html").as_uri()]


def test_an_unknown_recipe_is_one_line(styleshift: Command) -> None:
    said = styleshift("report", "pacs-orginal")
    assert said.status == 2
    assert said.err.startswith("styleshift: no recipe 'pacs-orginal'; did you mean one of pacs-original")


def test_without_the_extra_it_says_in_one_line_what_to_install(
    styleshift: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    said = styleshift("report")
    assert (said.status, said.err) == (2, "styleshift: an HTML page needs jinja2: pip install 'styleshift[report]'\n")


def test_without_scikit_learn_it_says_so_and_goes_on(styleshift: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styleshift.report.extras.has_tsne", lambda: False)
    said = styleshift("report")
    assert said.status == 0
    assert said.err == "the style map shows PCA alone: t-SNE needs scikit-learn: pip install 'styleshift[report]'\n"


def test_results_on_streams_come_with_what_is_imported(styleshift: Command, tmp_path: Path) -> None:
    written(tmp_path / "sent" / "streams-a.json", "the model of the stream")
    said = styleshift("report", "--import", tmp_path / "sent", "--out", tmp_path / "page.html")
    assert said.status == 0, said.err
    page = (tmp_path / "page.html").read_text()
    assert "the model of the stream" in page
    assert 'download="stream-1.csv"' in page
    assert "Nothing has been run yet" not in page
    assert Read(page).crossed == Read(page).open == []
