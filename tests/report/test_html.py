"""The page as a file: well formed, self-contained, with nothing in it that a name could have put there."""

import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from styleshift.data.decoding import Progress
from styleshift.experiments.store import Store
from styleshift.report.contents import Contents, LookChapter, contents_of
from styleshift.report.figure import Data
from styleshift.report.gallery import Group, Picture
from styleshift.report.html import gallery_page, report_page, write
from styleshift.report.looking import Answers, Look
from styleshift.report.predictions import calibration, confusion
from styleshift.report.style_map import Spotted, StyleMap, drawn

HOSTILE = '<script>alert("1")</script>'
VOID = {"meta", "link", "img", "br", "input"}


class Read(HTMLParser):
    """Every element of a page with its attributes, and what was not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def quiet(title: str) -> nullcontext[Progress]:
    return nullcontext(lambda done, total: None)


@pytest.fixture(scope="module")
def contents(smoke_store: Store) -> Contents:
    return contents_of(smoke_store, ("pacs-original", "pacs-imbalanced", "pacs-alpha"), None, quiet)


@pytest.fixture(scope="module")
def page(contents: Contents) -> str:
    return report_page(contents)


@pytest.fixture(scope="module")
def read(page: str) -> Read:
    return Read(page)


def hostile_gallery() -> str:
    picture = Picture(HOSTILE, "data:,", HOSTILE, HOSTILE, 0.5, HOSTILE, 0.6, None, True, HOSTILE)
    data = Data("images", (HOSTILE,), ((HOSTILE,),))
    return gallery_page(HOSTILE, [HOSTILE], [Group(HOSTILE, HOSTILE, 2, [picture])], data)


def test_every_element_is_closed_in_order(read: Read) -> None:
    assert (read.open, read.crossed) == ([], [])


def test_every_id_is_there_once_and_every_reference_leads_to_one(read: Read) -> None:
    ids = Counter(attributes["id"] for _, attributes in read.elements if "id" in attributes)
    assert not [name for name, count in ids.items() if count > 1]
    names = [attributes.get("aria-labelledby") for _, attributes in read.elements if "aria-labelledby" in attributes]
    links = [str(each["href"])[1:] for each in read.all("a") if str(each["href"]).startswith("#")]
    assert {*names, *links} <= set(ids)


def test_nothing_is_fetched_from_elsewhere(page: str, read: Read) -> None:
    addresses = [
        str(attributes[name])
        for _, attributes in read.elements
        for name in ("src", "href", "action", "srcset", "data")
        if name in attributes
    ]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_it_is_read_aloud_in_order(read: Read) -> None:
    levels = [int(name[1]) for name, _ in read.elements if name in ("h1", "h2", "h3", "h4", "h5")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_pictures_charts_and_tables_say_what_they_are(read: Read) -> None:
    assert read.all("img")
    assert all(each.get("alt") for each in read.all("img"))
    charts = [each for each in read.all("svg") if each.get("class") == "chart"]
    assert charts
    assert all(each.get("aria-label") for each in charts)
    assert all(each.get("scope") for each in read.all("th"))
    assert len(read.all("caption")) == len(read.all("table"))


def test_every_figure_hands_out_its_data(contents: Contents, read: Read) -> None:
    files = {each["download"] for each in read.all("a") if "download" in each}
    figures = [figure.name for chapter in (*contents.chapters, *contents.looks) for figure in chapter.figures]
    assert len(figures) == 4 + 2 * 4
    assert {f"{name}.{form}" for name in figures for form in ("csv", "json")} <= files


def test_it_shows_the_papers_figures_and_what_was_not_run(page: str) -> None:
    assert "84.63" in page
    assert "not run" in page
    assert "the numbers mean nothing" in page


def test_an_empty_store_says_what_to_run(tmp_path: Path) -> None:
    page = report_page(contents_of(Store(tmp_path), (), None, quiet))
    assert "styleshift run quickstart" in page
    assert Read(page).crossed == []


def test_hostile_names_stay_words() -> None:
    page = hostile_gallery()
    assert page.count("<script>") == 1  # the page's own
    assert "&lt;script&gt;" in page
    assert Read(page).crossed == []


def test_a_class_with_a_hostile_name_stays_words_in_the_report(contents: Contents) -> None:
    answers = Answers([0, 1], [0, 0], [0.9, 0.8], [0, 1], [0.9, 0.7], [2.0, 4.0], [False, True], [0, 0])
    spots = StyleMap([0], [Spotted(HOSTILE, 4.0, True, 0)], {"PCA": [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]}, [0.5, 0.5])
    look = Look([HOSTILE, "dog"], [HOSTILE], 3.0, HOSTILE, answers, spots, [])
    figures = (
        drawn(spots, "map", [HOSTILE], HOSTILE, 3.0, HOSTILE),
        confusion(look, "confusion"),
        calibration(look, "calibration"),
    )
    hostile = LookChapter("look-hostile", HOSTILE, HOSTILE, "", figures)
    broken = LookChapter("look-broken", HOSTILE, HOSTILE, HOSTILE)
    page = report_page(replace(contents, looks=(hostile, broken), made_with=((HOSTILE, HOSTILE),)))
    assert page.count("<script>") == 1
    assert Read(page).crossed == []


def test_it_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write("old", path)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write("new", path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_without_jinja2_it_says_what_to_install(contents: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'styleshift\[report\]'"):
        report_page(contents)
