"""One training on all cores, or one a core: images a second at the cpu scale, alone and beside other work.

`scripts/bench threads`: wall clock, every training a process of its own; beside them, where it is said, a process that
computes on one core without end.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.planning import training_step

ROOT = Path(__file__).parents[1]
BATCH = 128


@dataclass(frozen=True)
class Together:
    """images_per_second: of all trainings together. beside: whether something else ran on one core."""

    trainings: int
    threads: int
    beside: bool
    images_per_second: float

    def __str__(self) -> str:
        other = ", beside other work" if self.beside else ""
        return f"{self.trainings} at once, {self.threads} threads each{other}: {self.images_per_second:.0f} images/s"


def compare(steps: int, cores: int = 2) -> list[Together]:
    """One training on all cores and one a core; each alone and beside other work."""
    shared = ((1, cores), (cores, 1))
    return [_together(*how, beside, steps) for beside in (False, True) for how in shared]


def images_per_second(threads: int, steps: int) -> float:
    """Of one training in this process."""
    torch.set_num_threads(threads)
    draws = torch.Generator().manual_seed(0)
    images = torch.randn(BATCH, 3, 112, 112, generator=draws).contiguous(memory_format=torch.channels_last)
    step = training_step(images, torch.randint(7, (BATCH,), generator=draws))
    step()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    return BATCH * steps / (time.perf_counter() - began)


def _together(trainings: int, threads: int, beside: bool, steps: int) -> Together:
    command = [sys.executable, "-m", "benchmarks.threads", str(threads), str(steps)]
    with _other_work(beside):
        started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(trainings)]
        said = [training.communicate()[0] for training in started]
    return Together(trainings, threads, beside, round(sum(map(json.loads, said)), 1))


@contextmanager
def _other_work(wanted: bool) -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if busy is not None:
            busy.kill()
            busy.wait()


if __name__ == "__main__":
    print(json.dumps(images_per_second(int(sys.argv[1]), int(sys.argv[2]))))
