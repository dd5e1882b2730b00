"""`styleshift explain`: how far images are from the sources in style, and what the shift changes about each."""

import json
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from styleshift.cli.options import Arch, Classes, Json, Model, Styles, StylesAt, Transform

if TYPE_CHECKING:
    from styleshift.cli.models import Loaded
    from styleshift.shifted import ShiftedModel

GALLERY = Path("explained.html")
_MOST_PICTURES = 60  # of a kind; more make the file heavy, and nobody looks at them


def explain(
    model: Model,
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them.")],
    styles: Styles = None,
    at: StylesAt = None,
    arch: Arch = None,
    classes: Classes = None,
    transform: Transform = None,
    gallery: Annotated[
        Path | None, typer.Option(help="HTML file to write. [default: explained.html, none with --json]")
    ] = None,
    as_json: Json = False,
) -> None:
    """How far every image is, in spreads of the sources, and its class before and after the shift; with a gallery.

    Beyond alpha an image is shifted to the nearest source.
    """
    from styleshift.cli.images import files_of
    from styleshift.cli.models import loaded
    from styleshift.report import extras

    if gallery is not None:
        extras.jinja2()  # before the work, not after it
    files = files_of(images)
    network = loaded(model, arch, classes, transform)
    robust = network.shifted(styles, at)
    if robust is None:
        raise FileNotFoundError(f"no styles beside {model}; measure them with `styleshift fit`, or give --styles FILE")
    found = _explained(network, robust, files)
    if as_json:
        where = {"at": robust.sources.at, "gate_at": robust.attaching.decided_at}
        answer = {"alpha": robust.alpha, **where, "images": found}
        typer.echo(json.dumps(answer, indent=1, ensure_ascii=False))
    else:
        typer.echo(_table(found))
        typer.echo(_summary(found, robust), err=True)
    if gallery is not None or not as_json:
        _write_gallery(gallery or GALLERY, found, robust, model, asked=gallery is not None)


def _explained(network: "Loaded", robust: "ShiftedModel", files: Sequence[Path]) -> list[dict[str, Any]]:
    from styleshift.cli.images import batches_of
    from styleshift.data.progress import bar
    from styleshift.report.before_after import before_and_after

    found: list[dict[str, Any]] = []
    with bar("explaining images") as progress:
        for some, batch in batches_of(files, network.transform):
            before, after, seen = before_and_after(network.model, robust, batch)
            found += [
                {
                    "file": str(file),
                    # a score beyond every number (one source: everything is far) has no place in JSON
                    "score": score if isfinite(score) else None,
                    "far": far,
                    "nearest": str(seen.domains[nearest]),
                    "before": {"class": network.class_names[old], "confidence": round(old_sure, 4)},
                    "after": {"class": network.class_names[new], "confidence": round(new_sure, 4)},
                }
                for file, score, far, nearest, old, old_sure, new, new_sure in zip(
                    some,
                    seen.score.tolist(),
                    seen.far.tolist(),
                    seen.nearest.tolist(),
                    *(values.tolist() for side in (before, after) for values in side),
                    strict=True,
                )
            ]
            progress(len(found), len(files))
    return found


def _table(found: Sequence[dict[str, Any]]) -> str:
    rows = [
        (
            _score(line),
            "far" if line["far"] else "near",
            line["nearest"],
            *(f"{line[side]['class']} {line[side]['confidence']:.2f}" for side in ("before", "after")),
            line["file"],
        )
        for line in found
    ]
    rows.insert(0, ("score", "", "nearest", "before", "after", "image"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def _score(line: dict[str, Any]) -> str:
    return "far beyond" if line["score"] is None else f"{line['score']:.2f}"


def _summary(found: Sequence[dict[str, Any]], robust: "ShiftedModel") -> str:
    nearest = Counter(line["nearest"] for line in found)
    listed = ", ".join(f"{name} {count}" for name, count in nearest.most_common())
    far = sum(line["far"] for line in found)
    changed = sum(line["before"]["class"] != line["after"]["class"] for line in found)
    beyond = f"{far} of {len(found)} are farther than {robust.alpha:g} spreads after {robust.attaching.decided_at}"
    return f"{beyond}; the shift changes the class of {changed}; nearest: {listed}"


def _write_gallery(
    path: Path, found: Sequence[dict[str, Any]], robust: "ShiftedModel", model: str, asked: bool
) -> None:
    """asked: whether the file was asked for; if not, a missing package is no error."""
    from styleshift.data.decoding import rgb, square
    from styleshift.report.figure import Data
    from styleshift.report.gallery import SIDE, Picture, Said, grouped, thumbnail
    from styleshift.report.html import gallery_page, write

    def picture(index: int) -> Picture:
        line = found[index]
        return Picture(
            name=line["file"],
            image=thumbnail(square(rgb(Path(line["file"])), SIDE)),
            truth=None,
            before=line["before"]["class"],
            before_confidence=line["before"]["confidence"],
            after=line["after"]["class"],
            after_confidence=line["after"]["confidence"],
            score=line["score"],
            far=line["far"],
            nearest=line["nearest"],
        )

    said = [Said(None, line["before"]["class"], line["after"]["class"], line["far"]) for line in found]
    rows = [(line["file"], line["score"], line["far"], line["nearest"], *_sides(line)) for line in found]
    columns = ("file", "score", "far", "nearest", "before", "confidence before", "after", "confidence after")
    about = [
        f"{_summary(found, robust)}.",
        f"Model {model}. The score says how far an image's style is from the sources, in spreads; beyond alpha it is "
        "rendered in the nearest source's style before the rest of the network sees it.",
    ]
    try:
        page = gallery_page(
            f"{len(found)} images, explained",
            about,
            grouped(said, picture, _MOST_PICTURES),
            Data("images", columns, tuple(rows)),
        )
    except ModuleNotFoundError as missing:
        if asked:
            raise
        typer.echo(f"no gallery: {missing}", err=True)
        return
    write(page, path)
    typer.echo(f"gallery: {path}", err=True)


def _sides(line: dict[str, Any]) -> list[Any]:
    return [line[side][fact] for side in ("before", "after") for fact in ("class", "confidence")]
