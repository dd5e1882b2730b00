"""What a training shows while it runs."""

import io
import logging

import pytest
from rich.console import Console

from styleshift.training.progress import Moment, clock, shown

LAST = Moment(
    step=8, steps=8, epoch=2, epochs=2, loss=0.25, learning_rate=0.1, images_per_second=123.4, seconds_left=0.0
)
FIRST = Moment(
    step=1, steps=8, epoch=1, epochs=2, loss=1.5, learning_rate=0.1, images_per_second=100.0, seconds_left=61.0
)


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, _environ={})


def test_a_moment_reads_as_a_line() -> None:
    assert str(FIRST) == "epoch 1/2, step 1/8: loss 1.500, 100 images/s, 1:01 left"


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "0:00"), (59.6, "1:00"), (3661.0, "1:01:01")])
def test_a_clock_shows_minutes_and_hours(seconds: float, said: str) -> None:
    assert clock(seconds) == said


def test_off_a_terminal_the_last_step_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), shown("sketch", console(terminal=False)) as show:
        show(FIRST)
        show(LAST)
    assert caplog.messages == ["sketch: epoch 2/2, step 8/8: loss 0.250, 123 images/s, 0:00 left"]


def test_on_a_terminal_a_bar_is_drawn() -> None:
    terminal = console(terminal=True)
    with shown("sketch", terminal) as show:
        show(FIRST)
    assert isinstance(terminal.file, io.StringIO)
    assert "100 images/s" in terminal.file.getvalue()
