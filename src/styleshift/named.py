"""A method's name is its file's name: adding a method is adding a file.

    names    the methods in a package, without importing any
    find     the class behind a name
    build    an object of that class, with its settings

The file `layers/style_shifting.py` is the method "style_shifting" because it defines `class StyleShifting`: the file's
name without underscores, in any case. A file without such a class holds something that several methods need.
"""

import difflib
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def names(package: ModuleType) -> tuple[str, ...]:
    """The names of all methods in `package`, in alphabetical order."""
    return tuple(sorted(path.stem for path in _files(package) if _class_name(path)))


def find(package: ModuleType, name: str) -> type:
    """The class that the method `name` is."""
    known = names(package)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or list(known)
        raise KeyError(f"{package.__name__} has no {name!r}; did you mean one of {near}?")
    path = next(path for path in _files(package) if path.stem == name)
    found: type = getattr(import_module(f"{package.__name__}.{name}"), str(_class_name(path)))
    return found


def build(package: ModuleType, name: str, **settings: Any) -> Any:
    """The method `name` with these settings; the others keep their defaults."""
    method = find(package, name)
    parameters = inspect.signature(method).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if unknown := [] if takes_any else [setting for setting in settings if setting not in parameters]:
        raise ValueError(f"{name!r} has no setting {_quoted(unknown)}; {_its_settings(parameters)}.")
    needed = [key for key, parameter in parameters.items() if _is_needed(parameter) and key not in settings]
    if needed:
        raise ValueError(f"{name!r} needs a value for {_quoted(needed)}; {_its_settings(parameters)}.")
    return method(**settings)


def _files(package: ModuleType) -> Iterator[Path]:
    for folder in package.__path__:
        yield from (path for path in Path(folder).glob("*.py") if not path.stem.startswith("_"))


def _class_name(path: Path) -> str | None:
    wanted = path.stem.replace("_", "").lower()
    classes = re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return next((name for name in classes if name.lower() == wanted), None)


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind in (
        parameter.POSITIONAL_OR_KEYWORD,
        parameter.KEYWORD_ONLY,
    )


def _quoted(words: list[str]) -> str:
    return ", ".join(map(repr, words))


def _its_settings(parameters: Any) -> str:
    return f"its settings are {', '.join(parameters)}" if parameters else "it has no settings"
