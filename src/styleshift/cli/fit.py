"""`styleshift fit`: the sources' styles of a model, kept in a file, so that it can shift."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from styleshift.cli.options import Arch, Classes, Data, Json, Model, Transform

if TYPE_CHECKING:
    from torch import Tensor


def fit(
    model: Model,
    images: Annotated[str, typer.Argument(help="Training images: domain/class/file, a table, or a dataset's name.")],
    to: Annotated[
        Path | None, typer.Option(help="File to write. [default: styles-LAYER.safetensors beside the model]")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="Layer to shift after; left out, the network's own, else a list of them.")
    ] = None,
    alpha: Annotated[float, typer.Option(min=0, help="How many times the sources' spread counts as far.")] = 3.0,
    clusters: Annotated[
        int | None, typer.Option(min=1, help="k-means pseudo-domains in place of the folders'.")
    ] = None,
    arch: Arch = None,
    classes: Classes = None,
    transform: Transform = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Measure the styles of a model's training images, one pass, and write them to a file."""
    import styleshift
    from styleshift.cli.images import batches_of
    from styleshift.cli.models import loaded
    from styleshift.data.roots import dataset

    network = loaded(model, arch, classes, transform)
    sources = dataset(images, data)
    if not len(sources):
        raise ValueError(f"no image in {images}")

    def batches() -> "Iterator[tuple[Tensor, list[str]]]":
        domains = iter(sources.domains)
        for files, batch in batches_of([sources.path(index) for index in range(len(sources))], network.transform):
            yield batch, [sources.domain_names[next(domains)] for _ in files]

    robust = styleshift.fit(
        network.model,
        batches(),
        at=at or getattr(network.model, "shift_at", None),
        alpha=alpha,
        clusters=clusters,
        preprocessing={"transform": network.transform},
    )
    path = to or network.folder / f"styles-{robust.sources.at}.safetensors"
    robust.save(path)
    counts = dict(zip(map(str, robust.sources.domains), robust.sources.counts.tolist(), strict=True))
    if as_json:
        typer.echo(json.dumps({"styles": str(path), "at": robust.sources.at, "alpha": alpha, "images": counts}))
    else:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        typer.echo(f"{path}: styles after {robust.sources.at}, alpha {alpha:g}, from {listed}")
