"""Kinds of chart: lines in panels, dumbbells, bars, a histogram, a matrix of counts.

Each is given plain numbers, and gives SVG. What belongs to one line of a legend carries its `series` in the drawing, so
that the legend's button can hide it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from styleshift.report.drawing import Axis, Frame, Number, Shape, canvas, label, line, mark, polyline, tag, words

WIDTH = 480.0  # of the canvas; on a phone it is shrunk by a quarter, which 14-unit letters bear
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 14.0, 26.0, 46.0
_BETWEEN = 40.0


@dataclass(frozen=True)
class Point:
    """tip: what it says when it is pointed at. spread: half the height of a whisker. size: of its mark."""

    x: Number
    y: Number
    tip: str
    spread: Number | None = None
    size: Number = 4.0


@dataclass(frozen=True)
class Line:
    """colour: a class. joined: whether a line goes through its points."""

    series: str
    points: Sequence[Point]
    colour: str
    shape: Shape = "dot"
    dashed: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Panel:
    """Lines over one y axis; panels stand below each other over one x axis."""

    name: str
    lines: Sequence[Line]
    y: Axis
    height: Number = 200.0


def line_chart(panels: Sequence[Panel], x: Axis, x_name: str, about: str) -> str:
    """Panels of lines."""
    parts, top = [], _TOP
    for panel in panels:
        frame = Frame(_LEFT, top, WIDTH - _LEFT - _RIGHT, panel.height, x, panel.y)
        is_last = panel is panels[-1]
        parts.append(frame.grid(x_name if is_last else "", panel.name, x_ticks=is_last))
        parts += [_drawn_line(each, frame) for each in panel.lines]
        top += panel.height + _BETWEEN
    return canvas(WIDTH, top - _BETWEEN + _BOTTOM, about, *parts)


def _drawn_line(each: Line, frame: Frame) -> str:
    places = [frame.at(point.x, point.y) for point in each.points]
    parts = [polyline(places, f"line {each.colour}{' dashed' if each.dashed else ''}")] if each.joined else []
    for point, place in zip(each.points, places, strict=True):
        if point.spread:
            low, high = (frame.at(point.x, point.y + sign * point.spread) for sign in (-1, 1))
            parts.append(line(low, high, f"whisker {each.colour}"))
        parts.append(mark(each.shape, place, point.size, each.colour, point.tip))
    return tag("g", *parts, data_series=each.series)


@dataclass(frozen=True)
class Change:
    """A line of a dumbbell chart: from one value to another."""

    name: str
    before: Number
    after: Number
    tip: str


def dumbbells(groups: Sequence[tuple[str, Sequence[Change]]], x: Axis, x_name: str, about: str) -> str:
    """From a ring to a dot for each change, groups below each other with their names."""
    left, row, head = 84.0, 21.0, 26.0
    height = sum(head + row * len(changes) for _, changes in groups) + 4
    frame = Frame(left, 10, WIDTH - left - _RIGHT, height, x, Axis(0, 1, ()))
    parts = [line(frame.at(value, 0), frame.at(value, 1), "grid") for value, _ in x.ticks]
    parts.append(frame.grid(x_name))
    y = 10.0
    for name, changes in groups:
        y += head
        parts.append(label(6, y - 8, name, "name"))
        for change in changes:
            parts.append(_drawn_change(change, frame, y + row / 2))
            y += row
    return canvas(WIDTH, height + 10 + _BOTTOM, about, *parts)


def _drawn_change(change: Change, frame: Frame, y: Number) -> str:
    before, after = ((frame.at(value, 0)[0], y) for value in (change.before, change.after))
    way = "better" if change.after > change.before else "worse" if change.after < change.before else "same"
    return tag(
        "g",
        tag("title", words(change.tip)),
        label(frame.left - 8, y + 4, change.name, "tick end"),
        line(before, after, f"change {way}"),
        mark("ring", before, 4, f"fine {way}", ""),
        mark("dot", after, 4.5, way, ""),
        class_="tipped",
    )


@dataclass(frozen=True)
class Bar:
    """parts: lengths and colours, one behind the other."""

    name: str
    parts: Sequence[tuple[Number, str]]
    tip: str


def bars(rows: Sequence[Bar], x: Axis, x_name: str, about: str) -> str:
    """Horizontal bars."""
    left, row = 118.0, 28.0
    height = row * len(rows)
    frame = Frame(left, 8, WIDTH - left - _RIGHT, height, x, Axis(0, 1, ()))
    parts = [line(frame.at(value, 0), frame.at(value, 1), "grid") for value, _ in x.ticks]
    for place, bar in enumerate(rows):
        y, begin, pieces = 8 + place * row + 5, 0.0, []
        for length, colour in bar.parts:
            start, end = frame.at(begin, 0)[0], frame.at(begin + length, 0)[0]
            pieces.append(
                tag("rect", x=start, y=y, width=max(end - start, 0.5), height=row - 10, class_=f"bar {colour}")
            )
            begin += length
        name = label(left - 8, y + 13, bar.name, "tick end")
        parts.append(tag("g", tag("title", words(bar.tip)), name, *pieces, class_="tipped"))
    parts.append(frame.grid(x_name))
    return canvas(WIDTH, height + 8 + _BOTTOM, about, *parts)


@dataclass(frozen=True)
class Stack:
    """A bar of a histogram: from `low` to `high`, its parts one on the other: series, colour, count."""

    low: Number
    high: Number
    parts: Sequence[tuple[str, str, int]]


def histogram(stacks: Sequence[Stack], x: Axis, x_name: str, limit: tuple[Number, str], about: str) -> str:
    """Counts of values; limit: a line across at a value, and its name."""
    most = max(sum(count for *_, count in stack.parts) for stack in stacks)
    height = 300.0
    frame = Frame(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, height, x, Axis.over([0, most], least=0))
    parts = [frame.grid(x_name, "images")]
    for stack in stacks:
        below = 0
        for series, colour, count in stack.parts:
            (left, bottom), (right, top) = frame.at(stack.low, below), frame.at(stack.high, below + count)
            tip = f"{series}, {stack.low:.2f} to {stack.high:.2f}: {count} images"
            box = {"x": left + 0.5, "y": top, "width": right - left - 1, "height": bottom - top}
            shape = tag("rect", tag("title", words(tip)), **box, class_=f"mark bar {colour}")
            parts.append(tag("g", shape, data_series=series))
            below += count
    if x.low <= limit[0] <= x.high:
        x_limit = frame.at(limit[0], 0)[0]
        parts.append(line((x_limit, _TOP), (x_limit, _TOP + height), "limit"))
        parts.append(label(x_limit + 6, _TOP + 12, limit[1], "name"))
    return canvas(WIDTH, _TOP + height + _BOTTOM, about, *parts)


def matrix(counts: Sequence[Sequence[int]], names: Sequence[str], about: str) -> str:
    """Counts of true classes (rows) told as each class (columns); the darker, the larger share of its row."""
    left, top = 92.0, 84.0
    cell = (WIDTH - left - _RIGHT) / len(names)
    parts = [label(left, 14, "told as", "name"), label(6, top - 8, "truth", "name")]
    for place, name in enumerate(names):
        middle = left + (place + 0.5) * cell
        parts.append(label(middle + 4, top - 8, _short(name), "tick", turn=-45))
        parts.append(label(left - 8, top + (place + 0.5) * cell + 4, _short(name), "tick end"))
    for truth, row in enumerate(counts):
        for said, count in enumerate(row):
            share = count / max(sum(row), 1)
            tip = f"{names[truth]} told as {names[said]}: {count} images, {100 * share:.1f} % of {names[truth]}"
            corner = left + said * cell, top + truth * cell
            parts.append(_drawn_cell(corner, cell, count, share, tip, right=truth == said))
    return canvas(WIDTH, top + cell * len(names) + 8, about, *parts)


def _drawn_cell(place: tuple[Number, Number], size: Number, count: int, share: Number, tip: str, right: bool) -> str:
    square = tag(
        "rect",
        x=place[0] + 1,
        y=place[1] + 1,
        width=size - 2,
        height=size - 2,
        rx=2,
        class_=f"cell {'right' if right else 'wrong'}",
        fill_opacity=f"{share:.3f}",
    )
    number = label(
        place[0] + size / 2,
        place[1] + size / 2 + 4,
        count,
        f"count middle{' strong' if share > _STRONG else ''}",
    )
    return tag("g", tag("title", words(tip)), square, number if count and size >= _ROOM else "", class_="tipped")


_STRONG = 0.55  # share from which a cell is dark enough for light letters
_ROOM = 26.0  # side of a cell that a number fits into


def _short(name: str) -> str:
    return name if len(name) <= 11 else f"{name[:10]}…"
