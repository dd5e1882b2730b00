"""`styleshift report`: one HTML file with tables, figures and what was run on what."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from styleshift.cli.options import Data, Import, Store


def report(
    recipe: Annotated[
        list[str] | None, typer.Argument(help="Recipes' names, see `styleshift recipes`. [default: all with results]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. [default: report.html in the store]")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    store: Store = None,
    data: Data = None,
    records: Import = None,
) -> None:
    """One HTML file: tables beside the paper's, figures, a closer look at models, and what was run on what."""
    from styleshift.data.progress import bar
    from styleshift.experiments.store import Store, store_folder
    from styleshift.report import extras
    from styleshift.report.contents import contents_of
    from styleshift.report.html import report_page, write

    extras.jinja2()  # before the work, not after it
    if not extras.has_tsne():
        typer.echo(f"the style map shows PCA alone: {extras.NO_TSNE}", err=True)
    kept = Store(store_folder(store))
    for folder in records or ():
        kept.take_in(folder)
    path = out or kept.folder / "report.html"
    contents = contents_of(kept, recipe or (), data, bar, records or ())
    write(report_page(contents), path)
    typer.echo(f"{path}: {len(contents.tables)} tables from {len(contents.runs.rows)} runs")
    if open_:
        webbrowser.open(path.resolve().as_uri())
