"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Scale = Annotated[
    str | None, typer.Option(help="How long and large: smoke, cpu or paper. [default: the recipe's own, mostly cpu]")
]
Store = Annotated[Path | None, typer.Option(help="Folder of runs. [default: $STYLESHIFT_STORE, else ./runs]")]
Import = Annotated[
    list[Path] | None, typer.Option("--import", help="Take in the records in this folder first. May be repeated.")
]
Data = Annotated[
    Path | None, typer.Option(help="Data root. [default: $STYLESHIFT_DATA, else ./data, else the user's cache]")
]
Json = Annotated[bool, typer.Option("--json", help="For a program to read.")]
Model = Annotated[str, typer.Argument(help="A folder that train or run wrote, or with --arch a weights file.")]
Arch = Annotated[str | None, typer.Option(help="Network of a weights file: resnet18, timm:NAME, ...")]
Classes = Annotated[str | None, typer.Option(help="With --arch: how many classes, or their names: cat,dog,horse.")]
Transform = Annotated[str | None, typer.Option(help="light, tsb or domainbed. [default: the training's]")]
Styles = Annotated[Path | None, typer.Option(help="What `styleshift fit` wrote. [default: beside the model]")]
StylesAt = Annotated[str | None, typer.Option("--at", help="Of the styles beside the model, those after this layer.")]
