"""`styleshift train`: a model from the user's own images, ready to predict and to shift."""

import json
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from styleshift.cli.options import Data, Json

if TYPE_CHECKING:
    from styleshift.training.settings import Settings


def train(
    images: Annotated[
        str, typer.Argument(help="Folder of domain/class/file, CSV or Parquet table, or a dataset's name.")
    ],
    to: Annotated[Path, typer.Option(help="Folder for the model.")],
    method: Annotated[str, typer.Option(help="baseline, mixstyle, efdmix or dsu, each also with +sb.")] = "mixstyle+sb",
    backbone: Annotated[str, typer.Option(help="resnet18, resnet50, timm:NAME, ...")] = "resnet18",
    weights: Annotated[
        Path | None, typer.Option(help="What it starts from. [default: in weights/ below the data, else fetched]")
    ] = None,
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="Start from random weights.")] = False,
    target: Annotated[str | None, typer.Option(help="A domain to leave out.")] = None,
    transform: Annotated[str, typer.Option(help="light (112 pixels), tsb or domainbed (224 pixels).")] = "light",
    epochs: Annotated[int, typer.Option(min=1)] = 8,
    batch_size: Annotated[int, typer.Option(min=1)] = 128,
    learning_rate: Annotated[float, typer.Option(min=0)] = 0.01,
    choose: Annotated[str, typer.Option(help="last, or best-validation on a tenth of the images.")] = "last",
    seed: int = 0,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Train on images with domains. Interrupted, the same command goes on from there."""
    from styleshift.backbones.building import weights_for
    from styleshift.data.roots import data_root, dataset
    from styleshift.experiments.own_images import train_on
    from styleshift.training.progress import shown

    start = None if from_scratch else weights_for(backbone, weights, data_root(data) / "weights", download=True)
    if start is None and not from_scratch:
        raise FileNotFoundError(
            f"no weights to start {backbone} from; give --weights FILE, or --from-scratch for random ones"
        )
    settings = settings_of(
        method,
        backbone=backbone,
        weights=sha256_of(start),
        transform=transform,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        choose=choose,
        seed=seed,
    )
    with shown(f"{method} on {images}") as progress:
        outcome = train_on(dataset(images, data), settings, target, to, start, progress)
    if as_json:
        answer = {"model": str(to), "at": outcome.shift_at, "target": target, "accuracy": outcome.accuracy}
        typer.echo(json.dumps(answer))
        return
    for shift, share in outcome.accuracy.items():
        typer.echo(f"{target}, {shift}: {100 * share:.1f} %")
    typer.echo(f"{to}: model and styles after {outcome.shift_at}. Now `styleshift predict {to} IMAGES`")


def settings_of(method: str, **changed: Any) -> "Settings":
    """The cpu scale's training with this method and what was asked for besides."""
    from styleshift.experiments.methods import training_of
    from styleshift.experiments.scales import scale
    from styleshift.training.settings import Settings

    return Settings.of({**scale("cpu").training, **training_of(method), **changed})


def sha256_of(weights: Path | None) -> str | None:
    """What names the file that a training starts from."""
    if weights is None:
        return None
    if not weights.is_file():
        raise FileNotFoundError(f"no weights file {weights}")
    with weights.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
