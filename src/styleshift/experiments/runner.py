"""All runs of a recipe: what is done is skipped, what was interrupted goes on, what others work on is left to them."""

import logging
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from styleshift.experiments.materials import Content, Materials, content_of, materials_of
from styleshift.experiments.planning import LAYERS, Run, is_whole, shift_of, shifts_of
from styleshift.experiments.recipe import Recipe
from styleshift.experiments.record import Record
from styleshift.experiments.running import finished
from styleshift.experiments.store import Claim, ClaimLostError, Store
from styleshift.training.progress import Moment, ShowProgress, clock
from styleshift.training.trained import FILE

log = logging.getLogger(__name__)

_COST = {"resnet18": 1.0, "resnet50": 2.3}  # of a training step, in ResNet-18's


@dataclass(frozen=True)
class Outcome:
    """How many runs were finished now, were done before, and are being worked on by other processes."""

    finished: int
    done_before: int
    elsewhere: int

    def __str__(self) -> str:
        parts = [f"{self.finished} finished", f"{self.done_before} done before"]
        if self.elsewhere:
            parts.append(f"{self.elsewhere} left to other processes")
        return ", ".join(parts)


@dataclass(frozen=True)
class Grid:
    """The runs of a recipe, and where they and their results lie.

    data: the data root. weights: a file in place of those found below it.
    progress: gives what shows one training, by its title; see `styleshift.training.progress.shown`.
    """

    recipe: Recipe
    runs: Sequence[Run]
    store: Store
    progress: Callable[[str], AbstractContextManager[ShowProgress]]
    data: Path | None = None
    weights: Path | None = None

    def run(self) -> Outcome:
        """Do whatever is left to do. KeyboardInterrupt leaves everything so that a second call goes on."""
        # so that every recipe asking for the same weights and images finds these runs
        content = self.materials.content
        before = len(self.runs) - len(self.pending())
        now = elsewhere = 0
        for run in self.runs:
            if self._is_done(run, content):
                continue
            with self.store.claimed(run.key(*content)) as claim:
                if claim is None:
                    elsewhere += 1
                elif not self._is_done(run, content):  # another process may have finished it just now
                    if self._finish(run, claim):
                        now += 1
                    else:
                        elsewhere += 1
        return Outcome(now, before, elsewhere)

    @cached_property
    def materials(self) -> Materials:
        """What all the runs work on, decoded and fetched when it is first asked for."""
        return materials_of(self.runs[0], self.store.folder, self.data, self.weights, self.runs)

    @property
    def content(self) -> Content | None:
        """What names the images and first weights; None as long as they are not all here."""
        if "materials" in vars(self):
            return self.materials.content
        return content_of(self.runs[0], self.store.folder, self.data, self.weights)

    def pending(self) -> list[Run]:
        """The runs without a result from these images and weights; without one from any, while they are not here."""
        content = self.content
        return [run for run in self.runs if not self._is_done(run, content)]

    def seconds_left(self) -> float:
        """A guess for all that is pending, shared by all at work: what such runs took, or what the scale says."""
        took = self.store.records()
        return sum(_seconds(run, took) for run in self.pending()) / max(len(self.store.living_claims()), 1)

    def _is_done(self, run: Run, content: Content | None) -> bool:
        if content is None:
            return any(is_whole(record, self.recipe) for record in self.store.in_cell(run.cell))
        record = self.store.record(run.key(*content))
        return record is not None and is_whole(record, self.recipe)

    def _finish(self, run: Run, claim: Claim) -> bool:
        """Whether the result is ours: False where another process took the run over."""
        name = run.folder_name(run.key(*self.materials.content))
        log.info("%s: %s left in this grid", run, clock(self.seconds_left()))
        began = time.monotonic()
        # else it is trained now, and a record that is here came from elsewhere, of another model
        tested_again = (self.store.models / name / FILE).is_file()
        try:
            with self.progress(str(run)) as show:

                def held(moment: Moment) -> None:
                    claim.expect_held()
                    show(moment)

                record = finished(run, self.materials, self.store.models / name, shifts_of(self.recipe, LAYERS), held)
            claim.expect_held()
        except ClaimLostError as lost:
            log.warning("%s: %s", run, lost)
            return False
        if tested_again and (before := self.store.record(record.key)):
            # another recipe may have asked for ways that this one does not know
            record = record.with_tests_of(before)
        self.store.add(record, name)
        log.info("%s: %s in %s", run, _said(record, self.recipe), clock(time.monotonic() - began))
        return True


def _seconds(run: Run, records: Iterable[Record]) -> float:
    alike = [
        record.timing.training + record.timing.evaluation
        for record in records
        if (record.scale, record.dataset, record.facts["training"]["backbone"])
        == (run.scale.name, run.dataset, run.settings.backbone)
    ]
    cost = _COST.get(run.settings.backbone, 1.0)
    return statistics.median(alike) if alike else run.scale.minutes * 60 * cost


def _said(record: Record, recipe: Recipe) -> str:
    asked = dict.fromkeys(shift_of(recipe, row).name for row in recipe.rows if row.not_run is None)
    shares = {name: record.accuracy_of(name) for name in asked}
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items() if share is not None)
