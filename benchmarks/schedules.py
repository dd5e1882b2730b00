"""Which schedule for the cpu scale: short trainings compared on validation images of the sources, never of the target.

python -m benchmarks.schedules results/lab/schedules-photo.json --tried 8:0.005:1:0 --tried 5:0.01:1:5

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
    tried = [line for each in options.tried for line in compared(each, options.target, store, options.known)]
    words = ["python -m benchmarks.schedules", str(options.out), *(f"--tried {it}" for it in options.tried)]
    command = " ".join([*words, f"--target {options.target}", *(["--known"] if options.known else [])])
    found = {"command": command, "tried": tried, "means": means(tried)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["means"], indent=1))


def scheduled(tried: str) -> Scale:
    """The cpu scale with another schedule: EPOCHS:LEARNING_RATE[:SHARE_OF_BATCHES_WITH_SB[:CLIP]], CLIP 0 for none."""
    cpu = scale("cpu")
    epochs, rate, *others = tried.split(":")
    share, clip = map(float, (*others, *(1, cpu.training["clip"])[len(others) :]))
    schedule = {"epochs": int(epochs), "learning_rate": float(rate), "sb_share": share, "clip": clip or None}
    return cpu.model_copy(update={"training": {**cpu.training, **schedule}, "seeds": [0]})


def compared(tried: str, target: str, store: Store, known: bool = False) -> Iterator[dict[str, Any]]:
    """One line a method. known: take what the store holds, and train nothing."""
    table = recipe("pacs-original")
    for method in METHODS:
        # without SB its share changes nothing, so that training serves every share
        kind = scheduled(tried if method.endswith("+sb") else _without_share(tried))
        runs = runs_of(table, kind, only=[f"target={target}", f"method={method}"])
        if not known:
            Grid(table, runs, store, shown).run()
        if found := store.in_cell(runs[0].cell):
            yield {"schedule": tried, **_line(found[0])}


def _without_share(tried: str) -> str:
    epochs, rate, *others = tried.split(":")
    return ":".join([epochs, rate, *(["1", others[1]] if len(others) > 1 else [])])


def means(tried: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Of each schedule that both methods were trained by, their mean validation accuracy on the sources."""
    shares: dict[str, list[float]] = {}
    for line in tried:
        shares.setdefault(line["schedule"], []).append(line["validation"])
    return {schedule: round(statistics.fmean(own), 2) for schedule, own in shares.items() if len(own) == len(METHODS)}


def _line(record: Record) -> dict[str, Any]:
    return {
        "method": record.method,
        "validation": round(100 * record.validation["none"], 2),
        "target": round(100 * record.accuracy, 2),  # not looked at in choosing
        "final_loss": round(record.final_loss, 3),
        "minutes": round(record.timing.training / 60, 1),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--tried", action="append", required=True, metavar="EPOCHS:RATE[:SHARE[:CLIP]]")
    parser.add_argument("--known", action="store_true", help="only what the store holds; nothing is trained")
    parser.add_argument("--target", default="photo", help="the domain that is left out")
    parser.add_argument("--store", type=Path, default=store_folder())
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
