"""Pages: one HTML file each, with style, script, pictures and data inside, and nothing that is fetched from elsewhere.

report_page      everything gathered from a store
gallery_page     the user's own images, explained
write            a page, whole or not at all
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from styleshift import __version__
from styleshift.report.contents import Contents
from styleshift.report.drawing import mark
from styleshift.report.extras import jinja2
from styleshift.report.figure import Data, Key, shown
from styleshift.report.gallery import Group
from styleshift.writing import atomically


def report_page(contents: Contents) -> str:
    """The report."""
    return _filled("report.html", {"contents": contents})


def gallery_page(title: str, about: Sequence[str], groups: Sequence[Group], images: Data) -> str:
    """A gallery. about: its first lines. images: all of them, in words."""
    return _filled("explained.html", {"title": title, "about": about, "groups": groups, "images": images})


def write(page: str, path: Path) -> None:
    """Into `path`."""
    with atomically(path) as draft:
        draft.write_text(page, encoding="utf-8")


def _filled(template: str, values: Mapping[str, Any]) -> str:
    engine = jinja2()
    environment = engine.Environment(
        loader=engine.FunctionLoader(_part),
        autoescape=True,
        undefined=engine.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    environment.globals.update(version=__version__, style=_part("style.css"), script=_part("page.js"), sample=_sample)
    page: str = environment.get_template(template).render(values)
    return page


def _sample(key: Key) -> str:
    """The mark of a legend's line."""
    return mark(key.shape, (13, 7), 4.5, key.colour, "")


def _part(name: str) -> str:
    return (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")
