"""`styleshift predict`: classes of images, far ones shifted where the sources' styles are known."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from styleshift.cli.options import Arch, Classes, Json, Model, Styles, StylesAt, Transform


def predict(
    model: Model,
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them.")],
    styles: Styles = None,
    at: StylesAt = None,
    plain: Annotated[bool, typer.Option("--plain", help="Never shift.")] = False,
    arch: Arch = None,
    classes: Classes = None,
    transform: Transform = None,
    as_json: Json = False,
) -> None:
    """The class of every image, and how sure the model is."""
    import torch

    from styleshift.cli.images import batches_of, files_of
    from styleshift.cli.models import loaded
    from styleshift.training.metrics import predictions_of

    files = files_of(images)
    network = loaded(model, arch, classes, transform)
    robust = None if plain else network.shifted(styles, at)
    if robust is None and not plain:
        typer.echo("no styles beside the model, so nothing is shifted; see `styleshift fit`", err=True)
    found: list[dict[str, Any]] = []
    for some, batch in batches_of(files, network.transform):
        with torch.inference_mode():
            said = predictions_of((robust or network.model)(batch))
        shifted = robust.explain(batch).far.tolist() if robust else [False] * len(some)
        found += [
            {"file": str(file), "class": network.class_names[number], "confidence": round(sure, 4), "shifted": far}
            for file, number, sure, far in zip(
                some, said.classes.tolist(), said.confidence.tolist(), shifted, strict=True
            )
        ]
    if as_json:
        typer.echo(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for line in found:
        typer.echo(f"{line['file']}  {line['class']}  {line['confidence']:.2f}{'  shifted' if line['shifted'] else ''}")
