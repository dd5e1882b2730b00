"""Trainings to be killed: a process that forks one for each line it reads, so that all of them share one warm-up.

A line is JSON: {"folder": ..., "full_at": step or null}; answered by a line with the child's number. A further line
asks for its exit status (negative: the signal). From step `full_at` on, no file can be written.
"""

import json
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from styleshift.data.domains import Domains
from styleshift.data.protocols import Split
from styleshift.training.fit import train
from styleshift.training.progress import Moment
from styleshift.training.settings import Settings


@dataclass(frozen=True)
class Pictures:
    pixels: np.ndarray
    key: str = "made"

    def take(self, indices: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.pixels[indices]).contiguous(memory_format=torch.channels_last)


def serve(made: Path) -> None:
    arrays = np.load(made)
    count = len(arrays["classes"])
    names = tuple(map(str, range(count)))
    labels = arrays["classes"], arrays["domains"]
    dataset = Domains("made", Path(), names, *labels, ("wide", "middle", "narrow"), ("a", "b", "c", "d"))
    split = Split(arrays["train"], arrays["validation"], arrays["test"], (0, 1, 2), (3,))
    settings = Settings.of(json.loads(str(arrays["settings"])))
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(trained(settings, dataset, Pictures(arrays["pixels"]), split, **order))
        print(child, flush=True)
        # only when asked: until then the child's number is its own, even if it has ended
        sys.stdin.readline()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def trained(
    settings: Settings, dataset: Domains, images: Pictures, split: Split, folder: str, full_at: int | None
) -> int:
    def fill_the_disk(moment: Moment) -> None:
        if moment.step == full_at:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

    try:
        train(settings, dataset, images, split, Path(folder), progress=fill_the_disk, checkpoint_seconds=0.0)
    except KeyboardInterrupt:
        return 130
    except OSError:
        return 2
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    # the first optimizer of a process imports a compiler; every child has it already
    torch.optim.SGD([torch.zeros(1)])
    serve(Path(sys.argv[1]))
