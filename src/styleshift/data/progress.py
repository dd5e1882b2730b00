"""A progress bar with the time left, for work that reports how many are done and how many there are."""

from collections.abc import Iterator
from contextlib import contextmanager

from styleshift.data.decoding import Progress


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    """A bar on standard error while the block runs, none where that is no terminal; gives the function to report to."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
