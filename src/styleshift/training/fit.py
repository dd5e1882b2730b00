"""Training on the source domains, in plain torch (paper Sec. 5 and last appendix).

    train    the chosen model; begins, goes on or recognises that it is done, by what it finds in its folder

A folder holds `checkpoint.safetensors` while a training is under way and `model.safetensors` when it is done. One that
was killed at any moment goes on from its last checkpoint and ends in the same weights, bit for bit, on the same machine
and number of threads.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any

import torch
from torch import nn

from styleshift.data.domains import Domains
from styleshift.data.locking import locked, remove_drafts
from styleshift.training.allocating import freed_memory_kept
from styleshift.training.checkpoint import Tree, read_checkpoint, write_checkpoint
from styleshift.training.interrupting import interrupts_held
from styleshift.training.progress import Moment, ShowProgress, silent
from styleshift.training.randomness import own_randomness
from styleshift.training.run import Run
from styleshift.training.settings import Settings
from styleshift.training.source_data import Images, Parts, SourceData
from styleshift.training.trained import FILE, Trained, expect_same

CHECKPOINT = "checkpoint.safetensors"


def train(
    settings: Settings,
    dataset: Domains,
    images: Images,
    split: Parts,
    folder: Path,
    *,
    weights: Path | None = None,
    progress: ShowProgress = silent,
    checkpoint_seconds: float = 60.0,
) -> nn.Module:
    """The chosen model, in eval mode; `Trained.read(folder)` tells how it came about.

    images: the dataset's images, decoded (`styleshift.data.cache.decoded`).
    split: its train and validation parts are read; its test part is not.
    folder: made if it is not there. ValueError if a training with other settings or data is in it.
    weights: the file that `settings.weights` is the sha256 of.
    progress: called after every step.
    checkpoint_seconds: how much work a kill may cost. Ctrl-C and SIGTERM cost none: KeyboardInterrupt comes after a
        checkpoint.
    """
    data = SourceData.of(dataset, images, split)  # below this line, nothing of the target exists
    if settings.choose == "best-validation" and not len(data.validation):
        raise ValueError("choose=best-validation needs validation images, but the split has none; choose last")
    folder.mkdir(parents=True, exist_ok=True)
    # a second process that is given the same training waits for it, and finds it done
    with locked(folder / "lock"):
        done = Trained.read(folder)
        if done is not None:
            # what is finished serves any number of threads, as a run's key says; only to go on takes the same
            there = {**done.settings.plain(), "threads": settings.threads}
            expect_same(folder / FILE, there, done.data, settings, data.fingerprint)
            return done.model(folder)
        _expect_weights(settings, weights)
        return _trained(settings, data, folder, weights, progress, checkpoint_seconds)


def _trained(
    settings: Settings,
    data: SourceData,
    folder: Path,
    weights: Path | None,
    progress: ShowProgress,
    checkpoint_seconds: float,
) -> nn.Module:
    for file in (FILE, CHECKPOINT):
        remove_drafts(folder / file)
    with (
        interrupts_held() as asked_to_stop,
        own_randomness(settings.seed),
        _steady(settings.threads),
        freed_memory_kept(),
    ):
        begun = _begun(folder / CHECKPOINT, settings, data)
        run = Run(settings, data, weights)
        try:
            if begun is not None:
                run.restore(begun)
            _take_steps(run, folder / CHECKPOINT, asked_to_stop, progress, checkpoint_seconds)
        finally:
            run.close()
        run.finished().write(folder, run.model)
        (folder / CHECKPOINT).unlink(missing_ok=True)
        return run.model.eval()


def _take_steps(
    run: Run, checkpoint: Path, asked_to_stop: Callable[[], bool], progress: ShowProgress, checkpoint_seconds: float
) -> None:
    clock = _Clock(run)
    written = time.monotonic()
    while run.step < run.steps:
        run.take_step()
        progress(clock.moment(run))
        stop = asked_to_stop()
        if stop or time.monotonic() - written >= checkpoint_seconds:
            _write(run, checkpoint)
            written = time.monotonic()
        if stop:
            raise KeyboardInterrupt(f"interrupted after step {run.step} of {run.steps}; run again to go on from there")


def _write(run: Run, checkpoint: Path) -> None:
    begun = {"settings": run.settings.plain(), "data": run.data.fingerprint}
    write_checkpoint(checkpoint, {"of": begun, "run": run.tree()})


def _begun(checkpoint: Path, settings: Settings, data: SourceData) -> Tree | None:
    """Where this training was when it was stopped, or None if it has not begun."""
    if not checkpoint.exists():
        return None
    tree = read_checkpoint(checkpoint)
    expect_same(checkpoint, tree["of"]["settings"], tree["of"]["data"], settings, data.fingerprint)
    run: Tree = tree["run"]
    return run


class _Clock:
    """How fast a run goes, counted since now."""

    def __init__(self, run: Run) -> None:
        self.began, self.images, self.step = time.monotonic(), run.images, run.step

    def moment(self, run: Run) -> Moment:
        seconds = max(time.monotonic() - self.began, 1e-9)
        return Moment(
            step=run.step,
            steps=run.steps,
            epoch=(run.step - 1) // run.steps_per_epoch + 1,
            epochs=run.settings.epochs,
            loss=run.loss,
            learning_rate=run.learning_rate,
            images_per_second=(run.images - self.images) / seconds,
            seconds_left=seconds / (run.step - self.step) * (run.steps - run.step),
        )


def _expect_weights(settings: Settings, weights: Path | None) -> None:
    found = None if weights is None else sha256_of(weights)
    if found != settings.weights:
        raise ValueError(
            f"the settings begin from {_described(settings.weights)}, but {weights or 'no weights file'} "
            f"{'was given' if weights is None else f'is {_described(found)}'}. Give the file that the settings name"
        )


def _described(sha256: str | None) -> str:
    return "random weights" if sha256 is None else f"weights with sha256 {sha256[:12]}…"


def sha256_of(path: Path) -> str:
    """Of a file's bytes, for `Settings.weights`."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def _steady(threads: int) -> Iterator[None]:
    """The same sums in the same order every time; the caller's way of summing is put back."""
    threads_before, mode_before = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    deterministic: Any = torch.utils.deterministic  # a module whose one setting is a property
    filling = deterministic.fill_uninitialized_memory
    try:
        torch.set_num_threads(threads)
        # as use_deterministic_algorithms(True), which would import the whole compiler first
        torch.set_deterministic_debug_mode("error")
        # it would write every new tensor once more, to make bugs repeat that we do not have
        deterministic.fill_uninitialized_memory = False
        yield
    finally:
        torch.set_num_threads(threads_before)
        torch.set_deterministic_debug_mode(mode_before)
        deterministic.fill_uninitialized_memory = filling
