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
    from styleshift.training.adapted_rows import QUICK, row_of
    from styleshift.training.comparing import compared, verdicts

    network = loaded(model, arch, classes, transform)
    robust = network.shifted(styles, at)
    if robust is None:
        raise FileNotFoundError(f"no styles beside {model}; measure them with `styleshift fit`, or give --styles FILE")
    layer = robust.sources.at
    names = dict.fromkeys(["none", "ts", *(methods or QUICK)])
    rows = {name: row_of(name, layer, robust.alpha) for name in names}
    labelled = labelled_images(dataset(data), network, limit, seed)
    tried = compared(network.model, rows, {layer: robust.sources}, labelled, batch_size=batch, seed=seed, fitted=robust)
    found = verdicts(tried[0], tried[1])
    if as_json:
        judged = [{**vars(verdict), "words": verdict.words} for verdict in found]
        facts = {"model": model, "data": data, "images": len(labelled), "at": layer, "alpha": robust.alpha}
        answer = {**facts, "batch": batch, "methods": [each.plain() for each in tried], "verdicts": judged}
        typer.echo(json.dumps(answer, indent=1, ensure_ascii=False))
        return
    typer.echo(f"{len(labelled)} images in batches of {batch}; every domain shuffled, from a fresh start")
    typer.echo("\n".join([*table(tried), "", *(verdict.words for verdict in found)]))


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
    import numpy as np
    import torch

    from styleshift.data.cache import decoded
    from styleshift.data.progress import bar
    from styleshift.data.transforms import transform
    from styleshift.training.streams import Labelled

    if not len(images):
        raise ValueError(f"no image in {images.root}")
    own = _as_the_model_counts(images.class_names, network.class_names)
    if limit is not None:
        shuffled = np.random.default_rng(seed).permutation(len(images))
        domains = [shuffled[images.domains[shuffled] == n][:limit] for n in range(len(images.domain_names))]
        images = images.only(np.sort(np.concatenate(domains)))
    how = transform(network.transform)
    with bar(f"decoding {images.name}") as show:
        pixels = decoded(images, how.cache_size, progress=show)

    def prepared(numbers: "Tensor") -> "Tensor":
        return how.test(pixels.take(numbers.numpy()))

    classes = torch.tensor(own)[torch.tensor(images.classes)]
    return Labelled(prepared, classes, torch.tensor(images.domains), images.domain_names)


def _as_the_model_counts(given: tuple[str, ...], known: tuple[str, ...]) -> list[int]:
    from styleshift.data.domains import plain

    numbers = {plain(name): number for number, name in enumerate(known)}
    unknown = [name for name in given if plain(name) not in numbers]
    if unknown:
        raise ValueError(f"the model knows no class {', '.join(unknown)}; it knows {', '.join(known)}")
    return [numbers[plain(name)] for name in given]
