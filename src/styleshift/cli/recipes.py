"""`styleshift recipes`: every table and figure of the paper, and what is done of it."""

import json
from typing import TYPE_CHECKING, Any

import typer

from styleshift.cli.options import Import, Json, Scale, Store

if TYPE_CHECKING:
    from styleshift.experiments.scales import Scale as Schedule


def recipes(scale: Scale = "cpu", store: Store = None, records: Import = None, as_json: Json = False) -> None:
    """Every table and figure of the paper, and what is done of it."""
    from styleshift.experiments import scales
    from styleshift.experiments.paper import paper_tables
    from styleshift.experiments.recipe import recipe_names
    from styleshift.experiments.store import Store, store_folder

    kept = Store(store_folder(store))
    for folder in records or ():
        kept.take_in(folder)
    done = {record.cell for record in kept.records()}
    asked = scales.scale(scale)
    names = dict.fromkeys([*paper_tables(), *recipe_names()])
    entries = [_entry(name, asked, done) for name in names]
    typer.echo(json.dumps(entries, indent=1, ensure_ascii=False) if as_json else _text(entries, scale))


def _entry(name: str, scale: "Schedule", done: set[str]) -> dict[str, Any]:
    from styleshift.experiments.paper import paper_tables
    from styleshift.experiments.planning import runs_of
    from styleshift.experiments.recipe import recipe, recipe_names

    printed = paper_tables().get(name)
    built = name in recipe_names()
    runs = runs_of(recipe(name), scale) if built else []
    return {
        "name": name,
        "where": printed.where if printed else "",
        "title": printed.title if printed else recipe(name).title,
        "recipe": built,
        "runs": len(runs),
        "done": sum(run.cell in done for run in runs),
    }


def _text(entries: list[dict[str, Any]], scale: str) -> str:
    lines = [f"{'in the paper':13}{'recipe':32}{'runs done':>12}  title"]
    for entry in entries:
        runs = f"{entry['done']} of {entry['runs']}" if entry["recipe"] else "no recipe"
        lines.append(f"{entry['where']:13}{entry['name']:32}{runs:>12}  {entry['title']}")
    return "\n".join([*lines, f"Runs are counted at scale {scale}, for its seeds; recipes share them."])
