"""A method's name is its file's name."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from styleshift import named

FILES = {
    "style_mixing.py": "class StyleMixing:\n    def __init__(self, p=0.5, alpha=0.1): self.settings = (p, alpha)\n",
    "erm.py": "class _Hidden: ...\n\n\nclass ERM:\n    pass\n",
    "strict.py": "class Strict:\n    def __init__(self, needed, also=1): self.settings = (needed, also)\n",
    "anything.py": "class Anything:\n    def __init__(self, **settings): self.settings = settings\n",
    "shared.py": "class Different: ...\n",
    "_private.py": "class Private: ...\n",
    "broken.py": "raise ImportError\n\n\nclass Broken: ...\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with methods and other files in it."""
    folder = tmp_path / "made_methods"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("made_methods")
    for name in [name for name in sys.modules if name.startswith("made_methods")]:
        del sys.modules[name]


def test_names_are_those_of_the_files_that_define_their_class(package: ModuleType) -> None:
    assert named.names(package) == ("anything", "broken", "erm", "strict", "style_mixing")


def test_names_imports_nothing(package: ModuleType) -> None:
    named.names(package)
    assert not [name for name in sys.modules if name.startswith("made_methods.")]


@pytest.mark.parametrize(("name", "class_name"), [("style_mixing", "StyleMixing"), ("erm", "ERM")])
def test_find_gives_the_class_that_is_called_as_the_file(package: ModuleType, name: str, class_name: str) -> None:
    assert named.find(package, name).__name__ == class_name


def test_a_wrong_name_is_answered_with_near_ones(package: ModuleType) -> None:
    with pytest.raises(KeyError, match=r"made_methods has no 'style_mixin'; did you mean one of \['style_mixing'\]"):
        named.find(package, "style_mixin")


def test_a_name_like_no_other_is_answered_with_all(package: ModuleType) -> None:
    with pytest.raises(KeyError, match=r"'anything', 'broken', 'erm', 'strict', 'style_mixing'"):
        named.find(package, "qqq")


def test_build_hands_the_settings_over(package: ModuleType) -> None:
    assert named.build(package, "style_mixing", alpha=0.3).settings == (0.5, 0.3)


def test_an_unknown_setting_is_answered_with_those_there_are(package: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"'style_mixing' has no setting 'beta'; its settings are p, alpha\."):
        named.build(package, "style_mixing", beta=1, p=1)


def test_a_method_without_settings_says_so(package: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"'erm' has no setting 'p'; it has no settings\."):
        named.build(package, "erm", p=1)


def test_a_missing_setting_is_named(package: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"'strict' needs a value for 'needed'; its settings are needed, also\."):
        named.build(package, "strict", also=2)


def test_a_method_that_takes_any_setting_gets_any(package: ModuleType) -> None:
    assert named.build(package, "anything", colour="red").settings == {"colour": "red"}
