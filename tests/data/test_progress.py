"""The progress bar."""

import io

import pytest

from styleshift.data.progress import bar


def test_it_takes_reports_and_is_silent_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with bar("Decoding") as report:
        report(1, 2)
        report(2, 2)
    assert capsys.readouterr() == ("", "")


def test_it_shows_its_title_and_how_far_it_is_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    with bar("Decoding") as report:
        report(3, 7)
    assert "Decoding" in screen.getvalue()
    assert "3/7" in screen.getvalue()
