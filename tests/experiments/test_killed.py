"""A grid that is stopped anywhere (drawing, decoding, training, testing, recording) loses nothing and goes on."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import styleshift
from styleshift.data.cache import HEADER
from styleshift.experiments.record import Record
from styleshift.experiments.store import Store

SERVER = Path(__file__).with_name("killable_grid.py")
CACHE_BYTES = HEADER + 4 * 7 * 3 * 128**2 * 3  # domains, classes, images of each; side and colours


class Grids:
    """Starts grids, and says how they ended."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(str(styleshift.__file__)).parents[1])}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([sys.executable, str(SERVER)], text=True, env=environment, **pipes)

    def run(self, folder: Path, stop: str | None = None, after: float = 0) -> int:
        """One grid in `folder`, which meets `stop` `after` seconds. Gives its exit status."""
        assert self.process.stdin
        assert self.process.stdout
        full_after = after if stop == "full disk" else None
        print(json.dumps({"folder": str(folder), "full_after": full_after}), file=self.process.stdin, flush=True)
        child = int(self.process.stdout.readline())
        if stop in STATUS and stop != "full disk":
            time.sleep(after)
            os.kill(child, signal.SIGKILL if stop == "kill" else signal.SIGINT)
        print(file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


STATUS = {"kill": -9, "ctrl-c": 130, "full disk": 2}
STOPS = 4  # so many times a grid has to be really stopped


@pytest.fixture(scope="module")
def grids() -> Iterator[Grids]:
    started = Grids()
    yield started
    started.close()


@pytest.fixture(scope="module")
def undisturbed(grids: Grids, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A store in which the grid was left alone, and how long it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    began = time.monotonic()
    assert grids.run(folder) == 0
    return folder, time.monotonic() - began


def expect_sound(folder: Path) -> None:
    store = Store(folder)
    assert len(store.records()) == len(list((folder / "records").glob("*.json"))) <= 1
    assert store.living_claims() == set()
    assert all(cache.stat().st_size == CACHE_BYTES for cache in folder.rglob("*.u8"))


def measured(folder: Path) -> dict[str, Any]:
    """The one record, but for what differs from time to time."""
    (record,) = Store(folder).records()
    assert isinstance(record, Record)
    return record.model_dump(exclude={"timing"})


def weights(folder: Path) -> dict[str, bytes]:
    (file,) = (folder / "models").glob("*/model.safetensors")
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(file).items()}


@pytest.mark.parametrize("stop", STATUS)
def test_a_grid_that_is_stopped_again_and_again_has_the_results_of_one_that_was_not(
    stop: str, grids: Grids, undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    untouched, seconds = undisturbed
    chance, stopped, latest = random.Random(stop), 0, 0.6 * seconds
    for folder in (tmp_path / str(place) for place in itertools.count()):
        folder.mkdir()
        ended = None
        while ended != 0:
            again = stop if stopped < STOPS else None
            ended = grids.run(folder, again, chance.uniform(0, latest))
            assert ended in (0, STATUS[stop])
            stopped += ended == STATUS[stop]
            latest /= 2 if ended == 0 else 1  # too late: a grid that goes on, or has the machine to itself, is faster
            expect_sound(folder)
        assert measured(folder) == measured(untouched)
        assert weights(folder) == weights(untouched)
        assert not list(folder.rglob("checkpoint*"))
        if stopped == STOPS:
            return
