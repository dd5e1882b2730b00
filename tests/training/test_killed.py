"""A training that is killed at any moment ends, resumed, in the weights of one that was left alone."""

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

import numpy as np
import pytest
from safetensors.torch import load_file

import styleshift

SERVER = Path(__file__).with_name("killable_training.py")


class Trainings:
    """Starts trainings, and says how they ended."""

    def __init__(self, made: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(str(styleshift.__file__)).parents[1])}
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), str(made)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, folder: Path, full_at: int | None = None, send: int | None = None, after: float = 0) -> int:
        """One training in `folder`; `send` is a signal that it gets `after` seconds. Gives its exit status."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps({"folder": str(folder), "full_at": full_at}), file=self.process.stdin, flush=True)
        child = int(self.process.stdout.readline())
        if send is not None:
            time.sleep(after)
            os.kill(child, send)
        print(file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def trainings(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    arrays = tmp_path_factory.mktemp("made") / "made.npz"
    split, dataset = made.split, made.dataset
    np.savez(
        arrays,
        pixels=made.images.pixels,
        classes=dataset.classes,
        domains=dataset.domains,
        train=split.train,
        validation=split.validation,
        test=split.test,
        settings=json.dumps(made.settings.plain()),
    )
    started = Trainings(arrays)
    yield started
    started.close()


@pytest.fixture(scope="module")
def undisturbed(trainings: Trainings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert trainings.run(folder) == 0
    return weights(folder)


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(folder / "model.safetensors").items()}


@pytest.mark.parametrize(("number", "status", "times"), [(signal.SIGKILL, -9, 10), (signal.SIGINT, 130, 5)])
def test_a_training_that_is_stopped_again_and_again_ends_in_the_same_weights(
    number: int, status: int, times: int, trainings: Trainings, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    chance, stopped = random.Random(0), 0
    for folder in (tmp_path / str(place) for place in itertools.count()):
        ended = None
        while ended != 0:
            send = number if stopped < times else None
            ended = trainings.run(folder, send=send, after=chance.uniform(0, 0.3))
            assert ended in (0, status)
            stopped += ended == status
        assert weights(folder) == undisturbed
        assert not (folder / "checkpoint.safetensors").exists()
        if stopped == times:
            return


def test_a_training_that_meets_a_full_disk_ends_in_the_same_weights_when_there_is_room(
    trainings: Trainings, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    for step in sorted(random.Random(0).sample(range(1, 24), 5)):
        assert trainings.run(tmp_path, full_at=step) == 2
    assert trainings.run(tmp_path) == 0
    assert weights(tmp_path) == undisturbed
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "model.safetensors"]
