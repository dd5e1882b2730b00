"""`styleshift run`: the runs of a recipe."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from styleshift.cli.options import Data, Import, Json, Scale, Store

if TYPE_CHECKING:
    from styleshift.experiments.runner import Grid


def run(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, see `styleshift recipes`, or a TOML file.")],
    scale: Scale = None,
    seeds: Annotated[str, typer.Option(help="As in 0,1,2. [default: the scale's]")] = "",
    only: Annotated[
        list[str] | None, typer.Option(help="target=sketch, method=mixstyle+sb, ... May be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that work on the grid at once.")] = 1,
    store: Store = None,
    data: Data = None,
    weights: Annotated[
        Path | None, typer.Option(help="What trainings start from. [default: in weights/ below the data, else fetched]")
    ] = None,
    records: Import = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs and what they will take, and run nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run what a recipe needs and is not done yet.

    Interrupted or killed at any moment, the same command goes on from there. Several may work on one store.
    """
    from styleshift.experiments import recipe as recipes
    from styleshift.experiments import scales
    from styleshift.experiments.planning import runs_of
    from styleshift.experiments.runner import Grid
    from styleshift.experiments.store import Store, store_folder
    from styleshift.training.progress import shown

    asked = recipes.recipe(recipe)
    chosen = scales.scale_for(asked, scale)
    runs = runs_of(asked, chosen, numbers(seeds), only or ())
    kept = Store(store_folder(store))
    for folder in records or ():
        kept.take_in(folder)
    grid = Grid(asked, runs, kept, shown, data, weights)
    if dry_run:
        _list(grid, as_json)
        return
    try:
        outcome = in_processes(jobs) if jobs > 1 and len(grid.pending()) > 1 else str(grid.run())
    except KeyboardInterrupt as interrupt:
        said = str(interrupt) or "interrupted"
        raise KeyboardInterrupt(f"{said}. Nothing is lost: the same command goes on from there") from None
    if as_json:
        counts = {"runs": len(runs), "done": len(runs) - len(grid.pending())}
        typer.echo(json.dumps({"recipe": asked.name, "scale": chosen.name, **counts, "store": str(kept.folder)}))
    else:
        left = f"{len(grid.pending())} of {len(runs)} runs left to do{_unless(grid)}"
        typer.echo(f"{asked.name}, scale {chosen.name}: {outcome}; {left}")


def numbers(seeds: str) -> list[int]:
    """`0,1,2` as numbers."""
    try:
        return [int(seed) for seed in seeds.split(",")] if seeds else []
    except ValueError:
        raise ValueError(f"--seeds takes whole numbers as in 0,1,2; got {seeds!r}") from None


def in_processes(jobs: int) -> str:
    """This very command in so many processes, each with one job and its share of the cores, on one store."""
    from styleshift.data.decoding import available_cores

    # threads beyond the cores wait for one another: tests of small images then take ten times as long
    environment = {"OMP_NUM_THREADS": str(max(available_cores() // jobs, 1)), **os.environ}
    # -P: not with the modules that happen to lie in the current folder
    command = [sys.executable, "-P", "-c", _WORKER, *sys.argv[1:], "--jobs", "1"]
    # in sessions of their own: a terminal's Ctrl-C comes to this process alone, and each of them hears of it once
    workers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        for _ in range(jobs)
    ]
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        statuses = [worker.wait() for worker in workers]
    except KeyboardInterrupt:
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.wait()  # until its checkpoint is written
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    if stopped := sum(map(bool, statuses)):
        raise ValueError(f"{stopped} of {jobs} processes stopped early; see their messages above, then run this again")
    return f"{jobs} processes have ended"


# SIGTERM and not SIGINT: a shell's background job ignores that one, and so does whatever it starts
_WORKER = """
import signal
signal.signal(signal.SIGTERM, signal.default_int_handler)
from styleshift.cli.main import main
main()
"""


def _list(grid: "Grid", as_json: bool) -> None:
    from styleshift.training.progress import clock

    pending = {run.cell for run in grid.pending()}
    if as_json:
        facts = ("method", "domain", "scenario", "seed")
        listed = [
            {**{name: getattr(run, name) for name in facts}, "done": run.cell not in pending} for run in grid.runs
        ]
        compared = "settings" if grid.content is None else "settings, images and first weights"
        typer.echo(json.dumps({"runs": listed, "seconds": round(grid.seconds_left()), "compared": compared}, indent=1))
        return
    for run in grid.runs:
        typer.echo(f"{'to do' if run.cell in pending else 'done '}  {run}")
    counted = f"{len(pending)} of {len(grid.runs)} runs to do"
    typer.echo(f"{counted}, about {clock(grid.seconds_left())} in one process{_unless(grid)}")


def _unless(grid: "Grid") -> str:
    """What a count of runs to do leaves open, if anything."""
    if grid.content is not None or len(grid.pending()) == len(grid.runs):
        return ""
    return "; more if the done ones are of other images or first weights, for not all of these are here to compare with"
