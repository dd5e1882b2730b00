"""What the zoo says when a library or a network is not there."""

from collections.abc import Callable

import pytest

from styleshift.backbones import zoo


def test_another_library_is_refused() -> None:
    with pytest.raises(KeyError, match="no library 'keras' of networks; those are timm and torchvision"):
        zoo.build("keras", "resnet18", 3)


MISSING = """
import sys
sys.modules["timm"] = sys.modules["torchvision"] = None   # as if neither were installed
from styleshift.backbones import zoo
print(zoo.published("torchvision", "resnet18"))
try:
    zoo.build("timm", "resnet18", 3)
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def without_zoo(plain_python: Callable[[str], str]) -> list[str]:
    """The lines that a process without the zoo extra prints."""
    return plain_python(MISSING).splitlines()


def test_without_a_library_nothing_is_published(without_zoo: list[str]) -> None:
    assert without_zoo[0] == "None"


def test_a_missing_library_is_told_in_one_line_that_names_the_extra(without_zoo: list[str]) -> None:
    (line,) = without_zoo[1:]
    assert line.startswith("timm is not installed (")
    assert "pip install 'styleshift[zoo]'" in line
