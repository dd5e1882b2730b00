"""`styleshift table`: what was measured, beside the paper's figures."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from styleshift.cli.options import Import, Json, Scale, Store


def table(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, see `styleshift recipes`, or a TOML file.")],
    scale: Scale = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or json.")] = "text",
    store: Store = None,
    records: Import = None,
    export: Annotated[Path | None, typer.Option(help="Copy the records behind the table to this folder.")] = None,
    as_json: Json = False,
) -> None:
    """A recipe's table: mean ± deviation over seeds, how many there are, and the paper's figure."""
    from styleshift.experiments import recipe as recipes
    from styleshift.experiments import scales
    from styleshift.experiments.store import Store, store_folder
    from styleshift.experiments.table import table_of
    from styleshift.experiments.table_formats import FORMATS

    form = "json" if as_json else form
    if form not in FORMATS:
        near = difflib.get_close_matches(form, FORMATS) or FORMATS
        raise ValueError(f"no format {form!r}; did you mean one of {', '.join(near)}?")
    kept = Store(store_folder(store))
    for folder in records or ():
        kept.take_in(folder)
    asked = recipes.recipe(recipe)
    made = table_of(asked, scales.scale_for(asked, scale), kept.records())
    typer.echo(FORMATS[form](made), nl=form == "json")
    if export is not None:
        kept.give_out([record.key for record in made.records], export)
        typer.echo(f"{len(made.records)} records copied to {export}", err=True)
