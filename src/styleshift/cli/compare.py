"""`styleshift compare`: test-time methods side by side on the user's own model and labelled images."""

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from styleshift.cli.options import Arch, Classes, Json, Model, Styles, StylesAt, Transform

if TYPE_CHECKING:
    from torch import Tensor

    from styleshift.cli.models import Loaded
    from styleshift.data.domains import Domains
    from styleshift.shifted import ShiftedModel
    from styleshift.training.adapted_rows import Row
    from styleshift.training.comparing import Tried
    from styleshift.training.streams import Labelled


def compare(
    model: Model,
    data: Annotated[str, typer.Option(help="Labelled test images: domain/class/file, a table, or a dataset's name.")],
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="ts, tent, t3a:filter=1, ts+tent, ... May be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many images of each domain.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Images at once.")] = 64,
    styles: Styles = None,
    at: StylesAt = None,
    arch: Arch = None,
    classes: Classes = None,
    transform: Transform = None,
    seed: int = 0,
    as_json: Json = False,
) -> None:
    """Accuracy and cost of every test-time method on every domain, and whether style shifting helps there."""
    from styleshift.cli.models import loaded
    from styleshift.data.roots import dataset
    from styleshift.training.adapted_rows import QUICK, layers_of
    from styleshift.training.comparing import compared, verdicts

    network = loaded(model, arch, classes, transform)
    robust = network.shifted(styles, at)
    if robust is None:
        raise FileNotFoundError(f"no styles beside {model}; measure them with `styleshift fit`, or give --styles FILE")
    layer = robust.sources.at
    rows = {name: _row(name, robust) for name in ["none", "ts", *(methods or QUICK)]}
    sources = {each: robust.sources if each == layer else network.sources_at(each) for each in layers_of(rows.values())}
    labelled = labelled_images(dataset(data), network, limit, seed)
    tried = compared(network.model, rows, sources, labelled, batch_size=batch, seed=seed, fitted=robust)
    found = verdicts(tried[0], tried[1])
    if as_json:
        judged = [{**vars(verdict), "words": verdict.words} for verdict in found]
        facts = {"model": model, "data": data, "images": len(labelled), "at": layer, "alpha": robust.alpha}
        answer = {**facts, "batch": batch, "methods": [each.plain() for each in tried], "verdicts": judged}
        typer.echo(json.dumps(answer, indent=1, ensure_ascii=False))
        return
    typer.echo(f"{len(labelled)} images in batches of {batch}; every domain shuffled, from a fresh start")
    typer.echo("\n".join([*table(tried), "", *(verdict.words for verdict in found)]))


def _row(name: str, robust: "ShiftedModel") -> "Row":
    """What `name` means beside this model; an alpha that was found at a layer is not carried to another one."""
    from styleshift.training.adapted_rows import row_of

    layer = robust.sources.at
    was_found = robust.gate is not None or robust.calibration is not None
    return row_of(name, layer) if was_found else row_of(name, layer, robust.alpha)


def table(tried: "list[Tried]") -> list[str]:
    """A line a method: accuracy by domain, time beside the plain model's, and what it was allowed to see."""
    domains = list(tried[0].accuracy)
    width = max(len(each.method) for each in tried) + 2
    columns = [max(len(domain), 7) + 2 for domain in [*domains, "average"]]
    head = "".join(name.rjust(space) for name, space in zip([*domains, "average"], columns, strict=True))
    lines = [f"{'':<{width}}{head}{'x time':>9}  sees"]
    for each in tried:
        if each.refused is not None:
            lines.append(f"{each.method:<{width}}cannot answer: {each.refused}")
            continue
        shares = [*each.accuracy.values(), each.average or 0.0]
        cells = "".join(f"{100 * share:>{space}.1f}" for share, space in zip(shares, columns, strict=True))
        ratio = f"{each.cost.ratio.median:>9.2f}" if each.cost and each.cost.ratio else " " * 9
        lines.append(f"{each.method:<{width}}{cells}{ratio}  {seen(each)}")
    return lines


def seen(tried: "Tried") -> str:
    """What a method looks at or changes, in words."""
    words = [field.name.replace("_", " ") for field in fields(tried.sees) if getattr(tried.sees, field.name)]
    return ", ".join(words) or "the image alone"


def labelled_images(images: "Domains", network: "Loaded", limit: int | None, seed: int) -> "Labelled":
    """The images as the model takes them, and their classes as it counts them."""
    import torch

    from styleshift.data.cache import decoded
    from styleshift.data.domains import some_of_each
    from styleshift.data.progress import bar
    from styleshift.data.transforms import transform
    from styleshift.training.streams import Labelled

    if not len(images):
        raise ValueError(f"no image in {images.root}")
    images = images.only(some_of_each(images.domains, limit, seed))
    classes = network.classes_of(images)
    how = transform(network.transform)
    with bar(f"decoding {images.name}") as show:
        pixels = decoded(images, how.cache_size, progress=show)

    def prepared(numbers: "Tensor") -> "Tensor":
        return how.test(pixels.take(numbers.numpy()))

    return Labelled(prepared, classes, torch.tensor(images.domains), images.domain_names)
