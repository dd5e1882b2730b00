"""Which schedule for the cpu scale: short trainings compared on validation images of the sources, never of the target.

python -m benchmarks.schedules results/lab/schedules.json --tried 8:0.005 --tried 8:0.01

Each is a whole run of the lab in its store, so that the schedule that is taken need not be trained again.
"""

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from styleshift.experiments.planning import runs_of
from styleshift.experiments.recipe import recipe
from styleshift.experiments.record import Record
from styleshift.experiments.runner import Grid
from styleshift.experiments.scales import Scale, scale
from styleshift.experiments.store import Store, store_folder
from styleshift.training.progress import shown

METHODS = ("mixstyle", "mixstyle+sb")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    store = Store(options.store)
    tried = [line for each in options.tried for line in compared(each, options.target, store)]
    command = " ".join(["python -m benchmarks.schedules", str(options.out), *(f"--tried {it}" for it in options.tried)])
    found = {"command": f"{command} --target {options.target}", "tried": tried, "means": means(tried)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["means"], indent=1))


def scheduled(tried: str) -> Scale:
    """The cpu scale with another schedule: EPOCHS:LEARNING_RATE or EPOCHS:LEARNING_RATE:SHARE_OF_BATCHES_WITH_SB."""
    epochs, rate, share = [*tried.split(":"), "1"][:3]
    cpu = scale("cpu")
    schedule = {"epochs": int(epochs), "learning_rate": float(rate), "sb_share": float(share)}
    return cpu.model_copy(update={"training": {**cpu.training, **schedule}, "seeds": [0]})


def compared(tried: str, target: str, store: Store) -> Iterator[dict[str, Any]]:
    """One line a method."""
    table = recipe("pacs-original")
    for method in METHODS:
        # without SB its share changes nothing, so that training serves every share
        kind = scheduled(tried if method.endswith("+sb") else ":".join(tried.split(":")[:2]))
        runs = runs_of(table, kind, only=[f"target={target}", f"method={method}"])
        Grid(table, runs, store, shown).run()
        yield {"schedule": tried, **_line(store.in_cell(runs[0].cell)[0])}


def means(tried: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Of each schedule, the mean over methods of the sources' validation accuracy."""
    schedules = dict.fromkeys(line["schedule"] for line in tried)
    return {
        schedule: round(statistics.fmean(line["validation"] for line in tried if line["schedule"] == schedule), 2)
        for schedule in schedules
    }


def _line(record: Record) -> dict[str, Any]:
    return {
        "method": record.method,
        "validation": round(100 * record.validation["none"], 2),
        "final_loss": round(record.final_loss, 3),
        "minutes": round(record.timing.training / 60, 1),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--tried", action="append", required=True, metavar="EPOCHS:RATE[:SHARE]")
    parser.add_argument("--target", default="photo", help="the domain that is left out")
    parser.add_argument("--store", type=Path, default=store_folder())
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
