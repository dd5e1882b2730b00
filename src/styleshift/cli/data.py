"""`styleshift data`: which datasets there are, whether they are sound, and how to get them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from styleshift.cli.options import Data, Json

if TYPE_CHECKING:
    from styleshift.data.checking import Report
    from styleshift.data.domains import Domains

app = typer.Typer(help="Datasets: list, check, get, import.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(help="A dataset's name, as `styleshift data list` shows it.")]


@app.command("list")
def list_datasets(data: Data = None, as_json: Json = False) -> None:
    """The datasets known here, and which of them are there."""
    from styleshift.data.roots import catalogued, data_root, folder_of, known

    root = data_root(data)
    rows: list[dict[str, Any]] = []
    for name in known():
        entry = catalogued(name)
        assert entry is not None
        facts, place = entry.facts, folder_of(entry, root)
        rows.append(
            {
                "name": name,
                "title": facts.title,
                "domains": list(facts.names.domains),
                "classes": facts.class_count,
                "images": sum(facts.image_counts.values()),
                "there": place.is_dir(),
                "folder": str(place),
                "licence": facts.licence,
                "page": facts.page,
                "mirror": facts.mirror.repository if facts.mirror else None,
            }
        )
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    typer.echo(f"Data root: {root}")
    for row in rows:
        size = f"{len(row['domains'])} domains, {row['classes']} classes, {row['images']:,} images"
        typer.echo(f"{row['name']:<16}{'here' if row['there'] else '-':<6}{size}; licence: {row['licence']}")
    typer.echo("Your own: a folder of domain/class/file, or a CSV or Parquet table with columns path, class, domain.")


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="A dataset's name, or your own folder or table.")],
    data: Data = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads that decode. [default: one a core]")] = None,
    as_json: Json = False,
) -> None:
    """Decode every image, compare with what is known, and print how many there are of each class and domain."""
    from styleshift.data import checking
    from styleshift.data.progress import bar
    from styleshift.data.roots import located

    entry, place = located(name, data)
    with bar(f"Checking {place.name}") as progress:
        report = checking.check(entry, place, progress, workers)
    if as_json:
        typer.echo(json.dumps(report.facts(), indent=1, ensure_ascii=False))
    else:
        _print_report(report)
    if not report.sound:
        raise typer.Exit(2)


@app.command()
def get(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Download a dataset from a public mirror, verify it, unpack it. Interrupted, the same command goes on."""
    from styleshift.data.fetching import fetch
    from styleshift.data.roots import catalogued, known

    entry = catalogued(name)
    if entry is None:
        raise KeyError(f"there is no dataset {name!r} to get; known: {', '.join(known())}.")
    _print_dataset(fetch(entry, data), as_json)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="A zip, a tar or a folder.")],
    name: Annotated[str, typer.Option("--as", help="A dataset's name, or one of your own for domain/class/file.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Copy a dataset you have below the data root."""
    from styleshift.data.importing import import_dataset

    _print_dataset(import_dataset(source, name, data), as_json)


def _print_report(report: "Report") -> None:
    typer.echo(report.dataset.table())
    for note in report.notes:
        typer.echo(f"note: {note}")
    for problem in report.problems:
        typer.echo(f"bad: {problem.where} {problem.what}")
    ending = "sound" if report.sound else f"problems: {len(report.problems)}"
    typer.echo(f"{report.dataset.name} in {report.dataset.root}: {ending}", err=True)


def _print_dataset(dataset: "Domains", as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"dataset": dataset.name, "root": str(dataset.root), "images": len(dataset)}))
    else:
        typer.echo(f"{dataset.table()}\n{dataset.name} is in {dataset.root}")
