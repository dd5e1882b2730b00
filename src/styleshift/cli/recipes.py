"""`styleshift recipes`: every table and figure of the paper, and what is done of it."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from styleshift.cli.options import Import, Json, Scale, Store

if TYPE_CHECKING:
    from styleshift.experiments.record import Record


def recipes(scale: Scale = None, store: Store = None, records: Import = None, as_json: Json = False) -> None:
    """Every table and figure of the paper, and what is done of it."""
    from styleshift.experiments.paper import paper_tables
    from styleshift.experiments.recipe import recipe_names
    from styleshift.experiments.store import Store, store_folder

    kept = Store(store_folder(store))
    for folder in records or ():
        kept.take_in(folder)
    done: dict[str, list[Record]] = {}
    for record in kept.records():
        done.setdefault(record.cell, []).append(record)
    names = dict.fromkeys([*paper_tables(), *recipe_names()])
    entries = [_entry(name, scale, done) for name in names]
    typer.echo(json.dumps(entries, indent=1, ensure_ascii=False) if as_json else _text(entries, scale))


def _entry(name: str, scale: str | None, done: "Mapping[str, Sequence[Record]]") -> dict[str, Any]:
    """done: records by cell. A run counts where it was tested in every way that the recipe shows."""
    from styleshift.experiments.paper import paper_tables
    from styleshift.experiments.planning import is_whole, runs_of
    from styleshift.experiments.recipe import recipe, recipe_names
    from styleshift.experiments.scales import scale_for

    printed = paper_tables().get(name)
    asked = recipe(name) if name in recipe_names() else None
    runs = runs_of(asked, scale_for(asked, scale)) if asked else []
    finished = [run for run in runs if asked and any(is_whole(record, asked) for record in done.get(run.cell, []))]
    return {
        "name": name,
        "where": printed.where if printed else "",
        "title": printed.title if printed else recipe(name).title,
        "recipe": asked is not None,
        "runs": len(runs),
        "done": len(finished),
    }


def _text(entries: list[dict[str, Any]], scale: str | None) -> str:
    lines = [f"{'in the paper':13}{'recipe':32}{'runs done':>12}  title"]
    for entry in entries:
        runs = f"{entry['done']} of {entry['runs']}" if entry["recipe"] else "no recipe"
        lines.append(f"{entry['where']:13}{entry['name']:32}{runs:>12}  {entry['title']}")
    counted = f"at scale {scale}" if scale else "at each recipe's own scale"
    return "\n".join([*lines, f"Runs are counted {counted}, for its seeds; recipes share them."])
