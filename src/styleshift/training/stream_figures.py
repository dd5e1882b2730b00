"""Streams as a figure: a panel an order, a line a method, accuracy over the samples seen. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from styleshift.training.streams import Played
from styleshift.writing import atomically


def draw(played: Sequence[Played], path: Path) -> None:
    """Write the figure to `path`, a .png or .svg file. ImportError, with what to install, without matplotlib."""
    if path.suffix not in (".png", ".svg"):
        raise ValueError(f"a figure is a .png or .svg file; got {path}")
    if not played:
        raise ValueError("a figure needs at least one method that has played a stream; got none")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"drawing streams needs matplotlib: pip install matplotlib ({error})") from None
    orders = list(dict.fromkeys(each.order for each in played))
    figure = Figure(figsize=(4.2 * len(orders), 3.4), layout="constrained")
    panels = figure.subplots(1, len(orders), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(each.name for each in played))
    for panel, order in zip(panels, orders, strict=True):
        _fill(panel, [each for each in played if each.order == order], names)
        panel.set(title=order, xlabel="samples seen")
    panels[0].set_ylabel("accuracy since the point before, %")
    handles = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(handles), 6), fontsize=8)
    with atomically(path) as draft, rc_context({"svg.hashsalt": "styleshift"}):
        figure.savefig(draft, format=path.suffix[1:], dpi=150, metadata=_UNDATED[path.suffix])


# the same numbers give the same file: no date in it, and an SVG's names made of what they name
_UNDATED: dict[str, dict[str, str | None]] = {".png": {"Software": None}, ".svg": {"Date": None}}


def _fill(panel: Any, played: Sequence[Played], names: Sequence[str]) -> None:
    for each in played:
        seen = [moment.seen for moment in each.over_time]
        recent = [100 * moment.recent for moment in each.over_time]
        # a method's colour is that of its name in every panel
        panel.plot(seen, recent, color=f"C{names.index(each.name) % 10}", linewidth=1.2, label=each.name)
    panel.grid(alpha=0.3)
