"""The report in a real Chromium: no errors, and what the script builds is there."""

import re
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from styleshift.data.decoding import Progress
from styleshift.experiments.store import Store
from styleshift.report.contents import contents_of
from styleshift.report.html import report_page, write

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the report is not tested in a browser")


def opened(page: Path, profile: Path, *wanted: str) -> tuple[str, list[str]]:
    """What Chromium prints of a page, and the errors and warnings of its console."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=3000")
    log = ("--enable-logging=stderr", f"--user-data-dir={profile}")
    command = [str(CHROMIUM), *flags, *log, *wanted, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return done.stdout, re.findall(r"^.*CONSOLE.*$", done.stderr, flags=re.M)


@pytest.fixture(scope="module")
def page(smoke_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def quiet(title: str) -> nullcontext[Progress]:
        return nullcontext(lambda done, total: None)

    path = tmp_path_factory.mktemp("browser") / "report.html"
    write(report_page(contents_of(smoke_store, ("pacs-original",), None, quiet)), path)
    return path


def test_it_opens_without_a_word_on_the_console(page: Path, tmp_path: Path) -> None:
    document, console = opened(page, tmp_path, "--dump-dom")
    assert console == []
    # the script has run: tips have taken the titles' place, the map has its switch, the button its word
    assert 'data-tip="' in document
    assert "<title>" not in document.partition("</head>")[2]
    assert 'class="switch"' in document
    assert re.search(r'<button[^>]*id="theme"[^>]*>(Dark|Light)</button>', document)


def test_a_mistake_in_the_script_would_be_seen(page: Path, tmp_path: Path) -> None:
    broken = page.with_name("broken.html")
    broken.write_text(page.read_text().replace('"use strict";', '"use strict"; nothing.here();'))
    _, console = opened(broken, tmp_path, "--dump-dom")
    assert any("nothing is not defined" in line for line in console)
