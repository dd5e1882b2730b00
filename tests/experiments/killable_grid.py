"""Grids to be killed: a process that forks one for each line it reads, so that all of them share one warm-up.

A line is JSON: {"folder": ..., "full_after": seconds or null}; answered by a line with the child's number. A further
line asks for its exit status (negative: the signal). After `full_after` seconds no file can be written any more.
"""

import json
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from styleshift.experiments.planning import runs_of
from styleshift.experiments.recipe import recipe
from styleshift.experiments.runner import Grid
from styleshift.experiments.scales import Scale, scale
from styleshift.experiments.store import Store
from styleshift.training.progress import ShowProgress, silent


def tiny() -> Scale:
    """The smoke scale with some more steps, so that there is something to interrupt."""
    smoke = scale("smoke")
    return smoke.model_copy(update={"training": {**smoke.training, "epochs": 8}})


@contextmanager
def quiet(title: str) -> Iterator[ShowProgress]:
    yield silent


def serve() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(finished(Path(order["folder"]), order["full_after"]))
        print(child, flush=True)
        # only when asked: until then the child's number is its own, even if it has ended
        sys.stdin.readline()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def finished(folder: Path, full_after: float | None) -> int:
    if full_after is not None:
        full = threading.Timer(full_after, fill_the_disk)
        full.daemon = True
        full.start()
    asked = recipe("pacs-imbalanced")
    only = ["method=mixstyle+sb", "target=sketch", "scenario=class-imbalanced"]
    try:
        Grid(asked, runs_of(asked, tiny(), only=only), Store(folder), quiet).run()
    except KeyboardInterrupt:
        return 130
    except OSError:
        return 2
    return 0


def fill_the_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))


if __name__ == "__main__":
    torch.set_num_threads(1)
    # the first optimizer of a process imports a compiler; every child has it already
    torch.optim.SGD([torch.zeros(1)])
    serve()
