"""A figure's data, taken away and read back."""

import base64
import csv
import io
import json

import pytest

from styleshift.report.figure import MOST_ROWS_TO_READ, Data, Value, shown

SOME = Data("some", ("name", "value"), (("a,b", 1.5), ('say "x"', None)))


def carried(link: str) -> str:
    return base64.b64decode(link.partition("base64,")[2]).decode()


def test_csv_holds_it_all() -> None:
    assert SOME.csv_link.startswith("data:text/csv;")
    assert list(csv.reader(io.StringIO(carried(SOME.csv_link)))) == [["name", "value"], ["a,b", "1.5"], ['say "x"', ""]]


def test_json_is_a_list_of_objects() -> None:
    assert json.loads(carried(SOME.json_link)) == [{"name": "a,b", "value": 1.5}, {"name": 'say "x"', "value": None}]


def test_what_is_long_is_not_read_as_a_table() -> None:
    assert Data("x", ("a",), ((1,),) * MOST_ROWS_TO_READ).readable
    assert not Data("x", ("a",), ((1,),) * (MOST_ROWS_TO_READ + 1)).readable


@pytest.mark.parametrize(("value", "said"), [(None, ""), (1 / 3, "0.3333"), (12, "12"), ("x", "x"), (True, "True")])
def test_a_value_is_shown_short(value: Value, said: str) -> None:
    assert shown(value) == said
