"""Kinds of chart: what is drawn, read back from the SVG."""

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from styleshift.report.charts import (
    Bar,
    Change,
    Line,
    Panel,
    Point,
    Stack,
    bars,
    dumbbells,
    histogram,
    line_chart,
    matrix,
)
from styleshift.report.drawing import Axis

PERCENT = Axis(0, 100, ((0, "0"), (100, "100")))


def elements(drawing: str, name: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawing).iter(name))


def tips(drawing: str) -> Iterator[str]:
    return (title.text or "" for title in elements(drawing, "title"))


def test_every_point_of_a_line_has_its_tip_and_its_series() -> None:
    lines = [Line("us", [Point(0, 10, "ten", spread=2), Point(1, 20, "twenty")], "c0")]
    drawing = line_chart([Panel("accuracy", lines, PERCENT)], Axis.of_names(["a", "b"]), "x", "about")
    assert list(tips(drawing)) == ["ten", "twenty"]
    assert [group.get("data-series") for group in elements(drawing, "g")] == ["us"]
    assert len([each for each in elements(drawing, "line") if "whisker" in str(each.get("class"))]) == 1


def test_panels_stand_below_each_other_over_one_axis() -> None:
    lines = [Line("us", [Point(0, 10, "")], "c0")]
    drawing = line_chart([Panel("a", lines, PERCENT), Panel("b", lines, PERCENT)], Axis(0, 1, ((0, "zero"),)), "x", "")
    first, second = (float(str(dot.get("cy"))) for dot in elements(drawing, "circle"))
    assert second - first == 200 + 40
    assert drawing.count(">zero<") == 1


@pytest.mark.parametrize(("after", "way"), [(60.0, "better"), (40.0, "worse"), (50.0, "same")])
def test_a_change_for_the_worse_looks_otherwise_than_one_for_the_better(after: float, way: str) -> None:
    drawing = dumbbells([("mixstyle", [Change("Sketch", 50.0, after, "tip")])], PERCENT, "accuracy", "")
    assert f"change {way}" in drawing
    assert list(tips(drawing)) == ["tip"]


def test_bars_are_as_long_as_what_they_show() -> None:
    drawing = bars([Bar("run", [(30, "c0"), (10, "c1")], "40 s")], PERCENT, "seconds", "")
    long, short = (float(str(each.get("width"))) for each in elements(drawing, "rect"))
    assert long == pytest.approx(3 * short, rel=0.01)


def test_a_histogram_stacks_and_marks_its_limit() -> None:
    stacks = [Stack(0, 1, [("photo", "c0", 3), ("art", "c1", 1)])]
    drawing = histogram(stacks, Axis(0, 4, ()), "score", (3, "alpha 3"), "")
    low, high = (float(str(each.get("height"))) for each in elements(drawing, "rect"))
    assert low == pytest.approx(3 * high, rel=0.01)
    assert ">alpha 3</text>" in drawing
    assert "limit" not in histogram(stacks, Axis(0, 2, ()), "score", (3, "alpha 3"), "")


def test_a_matrix_says_counts_and_shares_of_the_truth() -> None:
    drawing = matrix([[3, 1], [0, 0]], ["cat", "dog"], "")
    assert "cat told as dog: 1 images, 25.0 % of cat" in list(tips(drawing))
    assert [float(str(each.get("fill-opacity"))) for each in elements(drawing, "rect")] == [0.75, 0.25, 0, 0]


def test_hostile_names_stay_words() -> None:
    name = "<script>alert(1)</script>"
    drawings = [
        matrix([[1]], [name], name),
        dumbbells([(name, [Change(name, 1, 2, name)])], PERCENT, name, name),
        bars([Bar(name, [(1, "c0")], name)], PERCENT, name, name),
        line_chart([Panel(name, [Line(name, [Point(0, 1, name)], "c0")], PERCENT)], Axis.of_names([name]), name, name),
        histogram([Stack(0, 1, [(name, "c0", 1)])], PERCENT, name, (0.5, name), name),
    ]
    assert not any("<script" in drawing for drawing in drawings)
