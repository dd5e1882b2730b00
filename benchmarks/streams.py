"""Test-time methods on streams of a lab's trained models: accuracy over time, one JSON file and one figure a model.

python -m benchmarks.streams runs --only target=sketch --only method=mixstyle --to results/test-time

Orders of one domain play the target's test images. `mixed` and `gradual` play them among images of the sources that
were held out of training, so that familiar and strange styles meet. EATA is given training images of the sources.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from styleshift.data.domains import some_of_each
from styleshift.data.transforms import transform
from styleshift.experiments.materials import Materials, materials_of
from styleshift.experiments.planning import Run, runs_of
from styleshift.experiments.provenance import commit, versions
from styleshift.experiments.recipe import recipe
from styleshift.experiments.record import Record
from styleshift.experiments.running import split_of
from styleshift.experiments.scales import scale
from styleshift.experiments.store import Store
from styleshift.sources import SourceStyles
from styleshift.training.adapted_rows import QUICK, row_of, wrapped
from styleshift.training.stream_figures import draw
from styleshift.training.streams import BATCH, LONG, ORDERS, Labelled, Played, play, stream
from styleshift.training.trained import Trained
from styleshift.writing import atomically

AMONG_SOURCES = ("mixed", "gradual")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    store = Store(options.store)
    chosen = [(record, run) for record in store.records() for run in _run_of(record, options.only)]
    if not chosen:
        raise SystemExit(f"no model in {options.store} fits {' '.join(options.only) or 'anything'}")
    for record, run in chosen:
        name = run.folder_name(record.key)
        played = list(_played(run, store, name, options))
        facts = {"command": _command(options), "model": name, "key": record.key, "precision": run.settings.precision}
        made_with = {"versions": versions(), "commit": commit(), "batch": options.batch, "seed": options.seed}
        written = {**facts, **made_with, "played": [each.plain() for each in played]}
        with atomically(options.to / f"streams-{name}.json") as draft:
            draft.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        if options.figure:
            draw(played, options.to / f"streams-{name}.{options.figure}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("store", type=Path, help="folder of runs")
    parser.add_argument("--only", action="append", default=[], metavar="NAME=VALUE", help="as for `styleshift run`")
    parser.add_argument("--order", action="append", choices=ORDERS, help="may be repeated; all of them")
    parser.add_argument("--method", action="append", help="as for `styleshift compare`; may be repeated")
    parser.add_argument("--episodic", action="store_true", help="reset after every batch")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--length", type=int, default=LONG, help="of the long stream, in samples")
    parser.add_argument("--limit", type=int, help="at most so many images of each domain")
    parser.add_argument("--seed", type=int, default=0, help="of the orders, and of what --limit draws")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, help="data root")
    parser.add_argument("--weights", type=Path, help="file that trainings started from")
    parser.add_argument("--to", type=Path, default=Path("results/test-time"))
    parser.add_argument("--figure", choices=("svg", "png"), help="draw it, too; needs matplotlib")
    return parser


def _run_of(record: Record, only: Sequence[str]) -> list[Run]:
    """The run that made a record, if it was asked for."""
    try:
        runs = runs_of(recipe(record.recipe), scale(record.scale), [record.seed], only)
    except ValueError:  # this recipe has none of these
        return []
    return [run for run in runs if run.cell == record.cell]


def _played(run: Run, store: Store, name: str, options: argparse.Namespace) -> Iterator[Played]:
    folder = store.models / name
    trained = Trained.read(folder)
    if trained is None:
        raise SystemExit(f"no trained model in {folder}")
    model = trained.model(folder)
    styles = {
        path.stem.removeprefix("styles-"): SourceStyles.load(path) for path in folder.glob("styles-*.safetensors")
    }
    materials = materials_of(run, store.folder, options.data, options.weights)
    for order in options.order or ORDERS:
        images = labelled(run, materials, order in AMONG_SOURCES, options.limit, options.seed)
        batches = stream(
            order, images.classes, images.domains, batch_size=options.batch, length=options.length, seed=options.seed
        )
        for method in options.method or QUICK:
            sources = source_images(run, materials, options.batch, options.seed)
            adapted = wrapped(row_of(method, run.shift_at), model, styles, images=sources, seed=options.seed)
            precision = run.settings.precision
            played = play(
                method, adapted, images, order, batches=batches, episodic=options.episodic, precision=precision
            )
            print(f"{name}  {order:<10}{method:<12}{100 * played.accuracy:6.2f} %", flush=True)
            yield played


def labelled(run: Run, materials: Materials, among_sources: bool, limit: int | None, seed: int = 0) -> Labelled:
    """The target's test images, among the held-out images of the sources where that is asked for.

    limit: at most so many of each domain, drawn with `seed`.
    """
    split, dataset = split_of(run, materials), materials.dataset
    rows = np.concatenate([split.test, split.validation]) if among_sources else split.test
    rows = rows[some_of_each(dataset.domains[rows], limit, seed)]
    how = transform(run.settings.transform)

    def prepared(numbers: torch.Tensor) -> torch.Tensor:
        return how.test(materials.images.take(rows[numbers.numpy()]))

    classes, domains = (torch.from_numpy(values[rows]) for values in (dataset.classes, dataset.domains))
    return Labelled(prepared, classes, domains, dataset.domain_names)


def source_images(run: Run, materials: Materials, batch: int, seed: int) -> Iterator[torch.Tensor]:
    """The images that the model was trained on, shuffled and as they are tested; read only by methods that ask."""
    rows = np.random.default_rng(seed).permutation(split_of(run, materials).train)
    how = transform(run.settings.transform)
    for first in range(0, len(rows), batch):
        yield how.test(materials.images.take(rows[first : first + batch]))


def _command(options: argparse.Namespace) -> str:
    words: list[Any] = ["python -m benchmarks.streams", options.store]
    for name, value in sorted(vars(options).items()):
        if name != "store" and value != _parser().get_default(name):
            given = value if isinstance(value, list) else [value]
            words += [f"--{name}" if each is True else f"--{name} {each}" for each in given]
    return " ".join(map(str, words))


if __name__ == "__main__":
    main()
