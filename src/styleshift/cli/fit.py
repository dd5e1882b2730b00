"""`styleshift fit`: the sources' styles of a model, kept in a file, so that it can shift."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from styleshift.cli.options import Arch, Classes, Data, Json, Model, Transform

if TYPE_CHECKING:
    from torch import Tensor

    from styleshift.calibrating import Auto, Metric
    from styleshift.cli.models import Loaded
    from styleshift.data.domains import Domains
    from styleshift.shifted import ShiftedModel


def fit(
    model: Model,
    images: Annotated[str, typer.Argument(help="Training images: domain/class/file, a table, or a dataset's name.")],
    to: Annotated[
        Path | None, typer.Option(help="File to write. [default: styles-LAYER.safetensors beside the model]")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Layer to shift after, several joined by commas, or auto. [default: the network's own]"),
    ] = None,
    alpha: Annotated[
        str, typer.Option(help="How many times the sources' spread counts as far, or auto: by --false-shift.")
    ] = "3",
    variant: Annotated[str, typer.Option(help="ts, all, sampled, soft, or partial, as in partial=0.5.")] = "ts",
    gate_at: Annotated[str | None, typer.Option(help="Layer that decides who is far. [default: --at]")] = None,
    metric: Annotated[
        str | None, typer.Option(help="With --alpha auto: euclidean, as in the paper. [default: mahalanobis]")
    ] = None,
    false_shift: Annotated[
        float | None, typer.Option(help="With --alpha auto: share of familiar images shifted. [default: 0.05]")
    ] = None,
    holdout: Annotated[
        str | None, typer.Option(help="With --alpha auto: images like IMAGES that the model was not trained on.")
    ] = None,
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
    threshold = number_or_auto(alpha)
    if threshold != "auto" and (false_shift is not None or holdout is not None):
        raise ValueError(f"--false-shift and --holdout find the threshold, with --alpha auto; got --alpha {alpha}")
    import styleshift
    from styleshift.cli.models import loaded

    network = loaded(model, arch, classes, transform)
    robust = styleshift.fit(
        network.model,
        batches(images, data, network, judged=at == "auto" and holdout is None),
        at=layers(at) or getattr(network.model, "shift_at", None),
        alpha=threshold,
        variant=variant,
        gate_at=gate_at,
        false_shift=0.05 if false_shift is None else false_shift,
        metric=cast("Metric | None", metric),  # fit says which there are
        holdout=None if holdout is None else batches(holdout, data, network, judged=at == "auto"),
        clusters=clusters,
        preprocessing={"transform": network.transform},
    )
    path = to or network.folder / f"styles-{robust.sources.at}.safetensors"
    robust.save(path)
    say(robust, path, as_json)


def batches(
    images: str, data: Path | None, network: "Loaded", judged: bool = False
) -> "Iterator[tuple[Tensor, list[str]] | tuple[Tensor, Tensor, list[str]]]":
    """What IMAGES names, batch by batch: images and domains, with the classes between them where layers are judged.

    judged: whether layers are compared on these images; by classes as the model counts them, if it knows them all.
    """
    from styleshift.cli.images import batches_of
    from styleshift.data.roots import dataset

    found = dataset(images, data)
    if not len(found):
        raise ValueError(f"no image in {images}")
    classes = _classes(found, network) if judged else None
    first = 0
    for files, batch in batches_of([found.path(index) for index in range(len(found))], network.transform):
        rows = slice(first, first + len(files))
        domains = [found.domain_names[row] for row in found.domains[rows]]
        yield (batch, domains) if classes is None else (batch, classes[rows], domains)
        first += len(files)


def _classes(found: "Domains", network: "Loaded") -> "Tensor | None":
    """The images' classes as the model counts them; None, and a line that says so, where it has others."""
    try:
        return network.classes_of(found)
    except ValueError as unknown:
        typer.echo(f"layers are compared by agreement with the model's own answers: {unknown}", err=True)
        return None


def say(robust: "ShiftedModel", path: Path, as_json: bool) -> None:
    """What was measured, and where it is."""
    counts = dict(zip(map(str, robust.sources.domains), robust.sources.counts.tolist(), strict=True))
    if as_json:
        typer.echo(json.dumps({"styles": str(path), **gate_of(robust), "images": counts}))
        return
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    gate = "" if robust.attaching.gate_at is None else f" decided after {robust.attaching.gate_at}"
    after = " and ".join([robust.sources.at, *robust.attaching.then])
    typer.echo(f"{path}: styles after {after}, alpha {robust.alpha:g}{gate}, from {listed}")
    if robust.calibration is not None:
        found = robust.calibration
        typer.echo(f"shifted of {found.held_out} held-out images: {found.shifted:.1%}", err=True)
        for tried in found.tried:
            way = f"{tried.fraction:.0%} of the way after {' and '.join(tried.at)}"
            typer.echo(f"decided after {tried.gate_at}, {way}: {tried.recovered:+.1%} on strange looks", err=True)


def gate_of(robust: "ShiftedModel") -> dict[str, Any]:
    """Where it shifts and what decides, as JSON values; the last two only where they were asked for."""
    facts: dict[str, Any] = {"at": robust.sources.at, "alpha": robust.alpha}
    if robust.attaching.then:
        facts |= {"then": robust.attaching.then, "fraction": robust.shifting.variant.fraction}
    if robust.attaching.gate_at is not None:
        facts["gate_at"] = robust.attaching.gate_at
    if robust.calibration is not None:
        facts["calibration"] = asdict(robust.calibration)
    return facts


def layers(at: str | None) -> "str | list[str] | None":
    """What --at means: one name, or several joined by commas."""
    return [name.strip() for name in at.split(",")] if at is not None and "," in at else at


def number_or_auto(alpha: str) -> "float | Auto":
    """What --alpha means."""
    if alpha == "auto":
        return "auto"
    try:
        return float(alpha)
    except ValueError:
        raise ValueError(f"--alpha is a number of at least 0, or auto; got {alpha!r}") from None
