"""How a training shows that it moves: images per second, the loss, the time that is left.

A training calls one function after every step with a `Moment`. `shown` makes that function for a terminal (a bar) or
for anything else (a line every half minute); any other function will do.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

_LOG = logging.getLogger("styleshift.training")
_LINE_SECONDS = 30.0


@dataclass(frozen=True)
class Moment:
    """Where a training stands after a step. `step` counts from 1 over all epochs; `epoch` counts from 1.

    images_per_second is over the steps since this process began or resumed; seconds_left follows from it.
    """

    step: int
    steps: int
    epoch: int
    epochs: int
    loss: float
    learning_rate: float
    images_per_second: float
    seconds_left: float

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch}/{self.epochs}, step {self.step}/{self.steps}: loss {self.loss:.3f}, "
            f"{self.images_per_second:.0f} images/s, {clock(self.seconds_left)} left"
        )


ShowProgress = Callable[[Moment], None]


def silent(moment: Moment) -> None:
    """Shows nothing."""


@contextmanager
def shown(title: str, console: Console | None = None) -> Iterator[ShowProgress]:
    """A bar on a terminal; on anything else a log line every 30 seconds and one at the end."""
    where = console or Console(stderr=True)
    if not where.is_terminal:
        yield _lines(title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[facts]}"))
    with Progress(*columns, console=where) as bar:
        task = bar.add_task(title, total=None, facts="")

        def show(moment: Moment) -> None:
            bar.update(task, completed=moment.step, total=moment.steps, facts=str(moment))

        yield show


def clock(seconds: float) -> str:
    """`seconds` as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _lines(title: str) -> ShowProgress:
    due = time.monotonic() + _LINE_SECONDS

    def show(moment: Moment) -> None:
        nonlocal due
        if time.monotonic() >= due or moment.step == moment.steps:
            due = time.monotonic() + _LINE_SECONDS
            _LOG.info("%s: %s", title, moment)

    return show
