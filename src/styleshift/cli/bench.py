"""`styleshift bench`: what test-time methods cost beside the plain model, on this machine."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from styleshift.cli.options import Arch, Json, StylesAt

if TYPE_CHECKING:
    from torch import nn

    from styleshift.sources import SourceStyles
    from styleshift.training.adapted_rows import Row
    from styleshift.training.cost import Cost, Spread


def bench(
    model: Annotated[
        str | None, typer.Argument(help="A folder that train or run wrote. [default: --arch with random weights]")
    ] = None,
    arch: Arch = None,
    at: StylesAt = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="ts, tent, t3a:filter=1, ts+tent, ... May be repeated.")
    ] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="May be repeated. [default: 1 and 64]")] = None,
    size: Annotated[int | None, typer.Option(min=8, help="Side of the images. [default: 224, or the model's]")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Timed turns of each.")] = 15,
    threads: Annotated[int | None, typer.Option(min=1, help="Of torch. [default: as it is]")] = None,
    as_json: Json = False,
) -> None:
    """Time, memory, forwards and backwards of every test-time method, as ratios to the plain model in the same run.

    The images are noise, and so are the source styles. How many samples EATA and SAR learn from depends on images and
    weights, so their filters are open where no setting of these was given: every sample learns, the worst case.
    """
    import torch

    from styleshift.training.adapted_rows import QUICK, layers_of, row_of, wrapped
    from styleshift.training.cost import costs

    if threads:
        torch.set_num_threads(threads)
    network, named, side = _network(model, arch, size)
    layer = at or str(getattr(network, "shift_at", "layer2"))
    asked = {name: row_of(name, layer) for name in methods or QUICK if name != "none"}
    rows = {name: _opened(row) for name, row in asked.items()}
    worst = {name for name, row in rows.items() if row != asked[name]}
    styles = {each: noise_styles(network, each, side) for each in layers_of(rows.values())}
    found: list[Cost] = []
    for count in batch or (1, 64):
        images = torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(count))
        adapted = {name: wrapped(row, network, styles) for name, row in rows.items()}
        found += costs(network, adapted, images, rounds=rounds)
    facts = {"model": named, "size": side, "at": layer, "threads": torch.get_num_threads(), "rounds": rounds}
    if as_json:
        costed = [{**cost.plain(), "worst_case": cost.method in worst} for cost in found]
        typer.echo(json.dumps({**facts, "torch": torch.__version__, "costs": costed}, indent=1))
        return
    typer.echo(", ".join(f"{name} {value}" for name, value in facts.items()))
    typer.echo("\n".join(table(found, worst)))


# what lets every sample learn: no entropy is above ln K, no cosine above 1; and nothing is put back in between
_OPEN: dict[str, dict[str, float]] = {
    "eata": {"margin": 1.01, "similarity": 1.01},
    "sar": {"margin": 1.01, "recovery": 0.0},
}


def _opened(row: "Row") -> "Row":
    """The row with its method's filters open, unless one of them was set."""
    from styleshift.training.adapted_rows import AdaptedRow

    if not isinstance(row, AdaptedRow) or row.method not in _OPEN:
        return row
    method: Any = row.build
    filters = _OPEN[row.method]
    if any(getattr(method, name) != getattr(type(method), name) for name in filters):
        return row
    return replace(row, build=replace(method, **filters))


def table(found: "list[Cost]", worst: Collection[str] = ()) -> list[str]:
    """One line a method and batch size; quartiles in brackets. worst: methods whose filters were opened."""
    lines = [
        f"{'batch':>5}  {'method':<16}{'ms an image':>24}{'x plain':>22}{'fwd':>6}{'bwd':>6}{'MB kept':>9}{'graph':>8}"
    ]
    for cost in found:
        if cost.refused is not None:
            lines.append(f"{cost.batch:>5}  {cost.method:<16}cannot answer: {cost.refused}")
            continue
        assert cost.milliseconds is not None
        assert cost.ratio is not None
        times = f"{_spread(cost.milliseconds):>24}{_spread(cost.ratio, 3):>22}"
        passed = f"{cost.forwards:>6g}{cost.backwards:>6g}"
        memory = f"{(cost.kept or 0) / 1e6:>9.2f}{(cost.graph or 0) / 1e6:>8.1f}"
        note = "  worst case: every sample learns" if cost.method in worst else ""
        lines.append(f"{cost.batch:>5}  {cost.method:<16}{times}{passed}{memory}{note}")
    return lines


def noise_styles(network: "nn.Module", layer: str, side: int) -> "SourceStyles":
    """Styles of three domains of noise."""
    import torch

    from styleshift.sources import sources_of

    images = torch.randn(6, 3, side, side, generator=torch.Generator().manual_seed(0))
    return sources_of(network, [(images, ["a", "b", "c"] * 2)], layer)


def _network(model: str | None, arch: str | None, size: int | None) -> "tuple[nn.Module, str, int]":
    from styleshift.backbones.building import backbone
    from styleshift.cli.models import loaded
    from styleshift.data.transforms import transform

    if model is None:
        name = arch or "resnet18"
        return backbone(name).eval(), f"{name} with random weights", size or 224
    if arch is not None:
        raise ValueError("bench takes a model's folder, or --arch for random weights; not both")
    network = loaded(model, None, None, None)
    how: Any = transform(network.transform)
    return network.model, model, size or int(how.size)


def _spread(spread: "Spread", digits: int = 2) -> str:
    return f"{spread.median:.{digits}f} [{spread.low:.{digits}f}, {spread.high:.{digits}f}]"
