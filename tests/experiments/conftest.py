"""Records without trainings."""

from collections.abc import Callable
from typing import Any

import pytest

from styleshift.experiments.planning import Run, runs_of
from styleshift.experiments.recipe import Recipe
from styleshift.experiments.record import Record, Tested, Timing
from styleshift.experiments.scales import scale

MakeRecord = Callable[..., Record]

_RECIPE = {
    "name": "small",
    "title": "A small table",
    "paper": "pacs-original",
    "dataset": "pacs",
    "columns": [{"name": "Art", "domain": "art_painting"}, {"name": "Sketch", "domain": "sketch"}],
    "rows": [
        {"method": "mixstyle", "paper": "MixStyle"},
        {"method": "mixstyle", "shift": "ts", "paper": "TS (+ MixStyle)"},
        {"method": "boda", "paper": "BoDA", "not_run": "not built"},
    ],
}


@pytest.fixture
def small() -> Recipe:
    """Two columns; one training with two shifts, and a row that cannot be run."""
    return Recipe.model_validate(_RECIPE)


@pytest.fixture
def small_runs(small: Recipe) -> list[Run]:
    """Its runs: art and sketch, seeds 0, 1 and 2."""
    return runs_of(small, scale("cpu"), [0, 1, 2])


@pytest.fixture
def make_record() -> MakeRecord:
    """Makes the record that a run might have left: `make_record(run, accuracy, shifts={...}, data=...)`."""
    return _record


def _record(
    run: Run,
    accuracy: float = 0.5,
    shifts: dict[str, float] | None = None,
    data: str = "d" * 64,
    weights: str | None = "w" * 64,
    **changed: Any,
) -> Record:
    named = {"ts:at=layer2": accuracy} if shifts is None else shifts
    fields: dict[str, Any] = {
        "key": run.key(data, weights),
        "cell": run.cell,
        "protocol": run.comparable,
        "recipe": run.recipe,
        "scale": run.scale.name,
        "dataset": run.dataset,
        "method": run.method,
        "domain": run.domain,
        "target": [run.domain],
        "seed": run.seed,
        "images": 100,
        **_tested(accuracy).model_dump(exclude={"shifted", "nearest"}),
        "shifts": {name: _tested(share) for name, share in named.items()},
        "validation": {"none": 0.9},
        "final_loss": 0.3,
        "epoch": 8,
        "timing": Timing(finished="2026-01-01T00:00:00+00:00", training=200, evaluation=40, images_per_second=200),
        "facts": run.facts,
        "threads": 2,
        "weights": weights,
        "data": data,
        "versions": {"torch": "2"},
        "commit": None,
    }
    return Record(**{**fields, **changed})


def _tested(accuracy: float) -> Tested:
    return Tested(
        accuracy=accuracy,
        macro_f1=accuracy,
        worst_domain=accuracy,
        calibration_error=0.1,
        per_class={"dog": accuracy, "cat": None},
        per_domain={"sketch": accuracy},
        shifted=1.0,
        nearest={"photo": 1.0},
    )
