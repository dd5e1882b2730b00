"""SVG by hand: elements, axes and marks. Colours and fonts are the page's (`page/style.css`).

tag      an element; what stands inside is SVG already, so words go through `words`
Axis     from values to places, with its ticks
Frame    two axes on a piece of the canvas
mark     a point in one of several shapes, with what it says when it is pointed at
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Shape = Literal["dot", "ring", "square", "triangle", "diamond", "cross", "plus"]
Number = int | float
SHAPES: tuple[Shape, ...] = ("dot", "square", "triangle", "diamond", "plus", "cross")
COLOURS = 8  # as many as style.css has; more than that take turns


def words(text: object) -> str:
    """`text` as it may stand in HTML, in an attribute too."""
    return html.escape(str(text), quote=True)


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element. attributes: `class_` is class, `stroke_width` stroke-width; None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(inside)}</{name}>"


def canvas(width: Number, height: Number, about: str, *inside: str) -> str:
    """A drawing that fills its column. about: for who cannot see it."""
    # a title of its own would pop up wherever the mouse rests, so the description is an attribute
    return tag(
        "svg", *inside, viewBox=f"0 0 {width:g} {height:g}", role="img", tabindex="0", aria_label=about, class_="chart"
    )


def label(x: Number, y: Number, text: object, class_: str | None = None, turn: Number | None = None) -> str:
    """Text; turn: in degrees, around its own place."""
    turned = None if turn is None else f"rotate({turn:g} {x:.1f} {y:.1f})"
    return tag("text", words(text), x=x, y=y, class_=class_, transform=turned)


def line(start: tuple[Number, Number], end: tuple[Number, Number], class_: str, **attributes: object) -> str:
    """A straight one."""
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=class_, **attributes)


def polyline(places: Iterable[tuple[Number, Number]], class_: str) -> str:
    """Through all places."""
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_=class_)


def mark(shape: Shape, place: tuple[Number, Number], size: Number, class_: str, tip: str) -> str:
    """A point. size: about its radius. tip: what it says when it is pointed at."""
    x, y = place
    inside = tag("title", words(tip)) if tip else ""
    if shape in ("dot", "ring"):
        return tag("circle", inside, cx=x, cy=y, r=size, class_=f"mark {shape} {class_}")
    return tag("path", inside, d=_outline(shape, x, y, size), class_=f"mark {shape} {class_}")


def colour(number: int) -> str:
    """The class of the colour with this number."""
    return f"c{number % COLOURS}"


def shape(number: int) -> Shape:
    """The shape that goes with the colour of this number, so that nothing is told by colour alone."""
    return SHAPES[number % len(SHAPES)]


@dataclass(frozen=True)
class Axis:
    """low, high: the values at its ends. ticks: values and what is written there."""

    low: Number
    high: Number
    ticks: tuple[tuple[Number, str], ...]

    def share(self, value: Number) -> Number:
        """How much of the way from its low to its high end."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    @classmethod
    def over(
        cls, values: Iterable[Number], count: int = 5, least: Number = -math.inf, most: Number = math.inf
    ) -> "Axis":
        """Round ticks around all `values`, but not beyond `least` and `most`."""
        known = [value for value in values if math.isfinite(value)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        step = _round_step((high - low) / 5 or 1)
        first, last = math.floor(low / step) * step, math.ceil(high / step) * step
        first, last = max(first if first < low or low == least else first - step, least), min(last, most)
        ticks = [first + place * step for place in range(round((last - first) / step) + 1)]
        return cls(first, max(last, first + step), tuple((value, f"{round(value, 6):g}") for value in ticks))

    @classmethod
    def of_names(cls, names: Sequence[str]) -> "Axis":
        """One place for each name, from 0."""
        return cls(-0.4, len(names) - 0.6, tuple((place, name) for place, name in enumerate(names)))


@dataclass(frozen=True)
class Frame:
    """A piece of the canvas with two axes; y grows upwards."""

    left: Number
    top: Number
    width: Number
    height: Number
    x: Axis
    y: Axis

    def at(self, x: Number, y: Number) -> tuple[Number, Number]:
        """Where these values are."""
        return self.left + self.x.share(x) * self.width, self.top + (1 - self.y.share(y)) * self.height

    def grid(self, x_label: str = "", y_label: str = "", x_ticks: bool = True) -> str:
        """Lines and words behind what is drawn."""
        right, bottom = self.left + self.width, self.top + self.height
        parts = []
        for value, name in self.y.ticks:
            _, y = self.at(self.x.low, value)
            parts += [line((self.left, y), (right, y), "grid"), label(self.left - 6, y + 4, name, "tick end")]
        for value, name in self.x.ticks if x_ticks else ():
            x, _ = self.at(value, self.y.low)
            parts.append(label(x, bottom + 17, name, "tick middle"))
        parts.append(line((self.left, bottom), (right, bottom), "axis"))
        if x_label:
            parts.append(label(self.left + self.width / 2, bottom + 36, x_label, "name middle"))
        if y_label:
            parts.append(label(self.left, self.top - 9, y_label, "name"))
        return "".join(parts)


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, Number) else words(value)


def _outline(shape: Shape, x: Number, y: Number, size: Number) -> str:
    corners = {
        "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
        "triangle": [(0, -1.15), (1.05, 0.8), (-1.05, 0.8)],
        "diamond": [(0, -1.25), (1.1, 0), (0, 1.25), (-1.1, 0)],
    }
    if shape in corners:
        return "M" + "L".join(f"{x + size * right:.1f} {y + size * down:.1f}" for right, down in corners[shape]) + "Z"
    a, b = (size, 0.0) if shape == "plus" else (size * 0.8, size * 0.8)
    return f"M{x - a:.1f} {y - b:.1f}L{x + a:.1f} {y + b:.1f}M{x - b:.1f} {y + a:.1f}L{x + b:.1f} {y - a:.1f}"


def _round_step(rough: Number) -> Number:
    power: Number = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)
