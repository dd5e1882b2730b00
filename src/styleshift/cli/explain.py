"""`styleshift explain`: how far images are from the sources in style, and which source each is nearest to."""

import json
from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from styleshift.cli.options import Arch, Classes, Json, Model, Styles, StylesAt, Transform


def explain(
    model: Model,
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them.")],
    styles: Styles = None,
    at: StylesAt = None,
    arch: Arch = None,
    classes: Classes = None,
    transform: Transform = None,
    as_json: Json = False,
) -> None:
    """How far every image is, in spreads of the sources; beyond alpha it would be shifted to the nearest."""
    from styleshift.cli.images import batches_of, files_of
    from styleshift.cli.models import loaded

    files = files_of(images)
    network = loaded(model, arch, classes, transform)
    robust = network.shifted(styles, at)
    if robust is None:
        raise FileNotFoundError(f"no styles beside {model}; measure them with `styleshift fit`, or give --styles FILE")
    gate = robust.attaching.gate_at or robust.sources.at
    found: list[dict[str, Any]] = []
    for some, batch in batches_of(files, network.transform):
        seen = robust.explain(batch)
        found += [
            # a score beyond every number (one source: everything is far) has no place in JSON
            {
                "file": str(file),
                "score": score if isfinite(score) else None,
                "far": far,
                "nearest": str(seen.domains[n]),
            }
            for file, score, far, n in zip(
                some, seen.score.tolist(), seen.far.tolist(), seen.nearest.tolist(), strict=True
            )
        ]
    if as_json:
        answer = {"alpha": robust.alpha, "at": robust.sources.at, "gate_at": gate, "images": found}
        typer.echo(json.dumps(answer, indent=1, ensure_ascii=False))
        return
    for line in found:
        score = "far beyond" if line["score"] is None else f"{line['score']:.2f}"
        typer.echo(f"{line['file']}  {score}  {'far' if line['far'] else 'near'}  {line['nearest']}")
    nearest = Counter(line["nearest"] for line in found)
    far = sum(line["far"] for line in found)
    listed = ", ".join(f"{name} {count}" for name, count in nearest.most_common())
    beyond = f"{far} of {len(found)} are farther than {robust.alpha:g} spreads after {gate}"
    typer.echo(f"{beyond}; nearest: {listed}", err=True)
