"""Elements, axes and marks."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styleshift.report.drawing import (
    SHAPES,
    Axis,
    Frame,
    canvas,
    colour,
    label,
    line,
    mark,
    polyline,
    shape,
    tag,
    words,
)

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def test_words_cannot_become_markup() -> None:
    assert words('<b> & "x"') == "&lt;b&gt; &amp; &quot;x&quot;"


def test_an_element_has_its_attributes_and_leaves_out_none() -> None:
    drawn = tag("g", "x", class_="a", stroke_width=1.25, y=2.0, fill=None)
    assert drawn == '<g class="a" stroke-width="1.2" y="2">x</g>'


def test_attributes_are_words_too() -> None:
    assert tag("g", data_series='"><script>') == '<g data-series="&quot;&gt;&lt;script&gt;"></g>'


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_an_axis_holds_all_its_values_between_few_ticks(values: list[float]) -> None:
    axis = Axis.over(values)
    assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in values)
    assert 2 <= len(axis.ticks) <= 9


def test_an_axis_ends_at_its_bounds() -> None:
    axis = Axis.over([93.0, 99.9], least=0, most=100)
    assert axis.high == 100
    assert [name for _, name in axis.ticks][-1] == "100"


@pytest.mark.parametrize("values", [[], [math.inf], [5.0], [0.0, 0.0]])
def test_an_axis_over_nothing_or_one_value_is_still_an_axis(values: list[float]) -> None:
    axis = Axis.over(values)
    assert axis.high > axis.low


def test_names_stand_at_whole_numbers() -> None:
    assert Axis.of_names(["a", "b"]).ticks == ((0, "a"), (1, "b"))


def test_a_frame_grows_upwards() -> None:
    frame = Frame(10, 20, 100, 50, Axis(0, 1, ()), Axis(0, 2, ()))
    assert frame.at(0, 0) == (10, 70)
    assert frame.at(1, 2) == (110, 20)


def test_a_grid_names_its_ticks_and_axes() -> None:
    drawn = Frame(0, 0, 10, 10, Axis.of_names(["here"]), Axis.over([0, 1])).grid("across", "up")
    assert all(f">{word}</text>" in drawn for word in ("here", "across", "up", "0.2"))


@pytest.mark.parametrize("form", [*SHAPES, "ring"])
def test_a_mark_says_what_it_is(form: str) -> None:
    element = ElementTree.fromstring(mark(form, (1, 2), 3, "c0", "cat & dog"))
    assert element.findtext("title") == "cat & dog"
    assert element.get("class") == f"mark {form} c0"


def test_colours_and_shapes_take_turns() -> None:
    assert colour(0) == colour(8) != colour(1)
    assert shape(0) == shape(6) != shape(1)


def test_a_canvas_is_described_and_can_be_stepped_to() -> None:
    inside = (line((0, 0), (1, 1), "axis"), label(0, 0, "x", turn=-45))
    drawn = ElementTree.fromstring(canvas(4, 3, "a <drawing>", *inside))
    assert (drawn.get("aria-label"), drawn.get("role"), drawn.get("tabindex")) == ("a <drawing>", "img", "0")


def test_a_polyline_goes_through_all_places() -> None:
    assert 'points="0.0,1.0 2.0,3.0"' in polyline([(0, 1), (2, 3)], "line")
