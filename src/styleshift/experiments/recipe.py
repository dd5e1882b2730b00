"""A recipe: one table or figure of the paper as a TOML file, its columns, its rows and what they share.

    columns     a domain each: left out of the training (`leave-one-domain-out`) or the only one in it (`single-source`)
    rows        a method (what is trained) and a shift (what is done at test time)

Recipes are data: `recipes/NAME.toml`, or any file of the same form. Their scale is not theirs: see scales.py.
"""

import difflib
import tomllib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

QUOTED = "quoted by the paper"
_SCALES = "scales"  # the one file in the folder that is no recipe


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Column(_Part):
    """A column: one training a row and seed.

    name: as the paper prints it; `GROUP/NAME` where a table has several halves, each with its own average.
    domain: the target, or in a single-source recipe the source. scenario: the recipe's, where it is left out.
    """

    name: str
    domain: str
    scenario: str | None = None

    @property
    def group(self) -> str:
        """What stands before the slash; empty in a table of one part."""
        return self.name.rpartition("/")[0]


class Row(_Part):
    """A row: a method with a shift.

    method: what is trained; see `styleshift.experiments.methods`.
    shift: what is done at test time; see `styleshift.training.adapted_rows`.
    paper: the paper's words for this row. oracle: chosen with target labels, and said so.
    not_run: why there is nothing to run; the paper's figure stays in the table.
    """

    method: str
    shift: str = "none"
    paper: str | None = None
    oracle: bool = False
    not_run: str | None = None

    @property
    def label(self) -> str:
        """What a reader calls this row."""
        words = self.paper or (self.method if self.shift == "none" else f"{self.method}, {self.shift}")
        return f"{words} (oracle)" if self.oracle else words


class Recipe(_Part):
    """One table or figure.

    paper: the table that the figures beside it come from; the recipe's own name where it is left out.
    split: how validation images are chosen; see `styleshift.data.protocols`.
    scenario: which training images are taken away; see `styleshift.data.imbalance`.
    shift_at, alpha: what the shift `ts` means here. clusters: k-means pseudo-domains instead of domain labels.
    points: modules that a method's layers follow, by its first word, where they are not the published ones.
    scale: what it is run at where nothing else is asked for; see `styleshift.experiments.scales`.
    show: every column, or averages only (a figure's lines).
    timed: the table has a column of inference times, and runs measure them.
    """

    name: str
    title: str
    about: str = ""
    paper: str
    dataset: str
    protocol: Literal["leave-one-domain-out", "single-source"] = "leave-one-domain-out"
    split: str = "official"
    scenario: str = "original"
    backbone: str = "resnet18"
    shift_at: str = "layer2"
    alpha: float = Field(default=3.0, ge=0)
    clusters: int | None = Field(default=None, ge=1)
    points: dict[str, list[str]] = {}
    scale: str = "cpu"
    show: Literal["columns", "averages"] = "columns"
    timed: bool = False
    columns: list[Column] = Field(min_length=1)
    rows: list[Row] = Field(min_length=1)

    @model_validator(mode="after")
    def _no_twins(self) -> "Recipe":
        names = [column.name for column in self.columns]
        rows = [row.label for row in self.rows]
        for what, values in (("columns", names), ("rows", rows)):
            twins = sorted({value for value in values if values.count(value) > 1})
            if twins:
                raise ValueError(f"{what} must differ; twice there is {', '.join(twins)}")
        return self

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that the columns name, each once."""
        return tuple(dict.fromkeys(column.domain for column in self.columns))

    @property
    def groups(self) -> tuple[str, ...]:
        """The halves of the table, each with an average of its own; `("",)` for a table of one part."""
        return tuple(dict.fromkeys(column.group for column in self.columns))


def recipe(name: str) -> Recipe:
    """The recipe called `name`, or the one in the file `name`. KeyError with near names, ValueError for a bad file."""
    path = Path(name) if name.endswith(".toml") else recipes_folder() / f"{name}.toml"
    if name.endswith(".toml") and not path.is_file():
        raise FileNotFoundError(f"no recipe file {name}")
    if not path.is_file() or path.stem == _SCALES:
        near = difflib.get_close_matches(name, recipe_names()) or recipe_names()
        raise KeyError(f"no recipe {name!r}; did you mean one of {', '.join(near)}?")
    return _validated(path.stem, read_toml(path), path)


def recipe_names() -> tuple[str, ...]:
    """The recipes that come with styleshift, sorted."""
    return tuple(sorted(path.stem for path in recipes_folder().glob("*.toml") if path.stem != _SCALES))


def recipes_folder() -> Path:
    """Where they are: inside an installed package, or at the root of the source tree."""
    shipped = Path(str(resources.files(__package__))) / "shipped"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "recipes"


def scales_file() -> Path:
    """The file that says what each scale means."""
    return recipes_folder() / f"{_SCALES}.toml"


def read_toml(path: Path) -> dict[str, Any]:
    """What `path` holds. ValueError, with the place, where it is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error


def one_line(error: ValidationError, kind: type[BaseModel], where: object) -> str:
    """One thing wrong with what was read from `where`; first a key that does not exist, with near names."""
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    place = [str(step) for step in first["loc"]]
    message = f"{where}: {'.'.join(place) or 'the whole'}: {first['msg']}"
    if first["type"] == "extra_forbidden":
        known = _fields_at(kind, place[:-1])
        near = difflib.get_close_matches(place[-1], known) or sorted(known)
        message = f"{where}: no key {'.'.join(place)!r}; did you mean one of {', '.join(near)}?"
    rest = error.error_count() - 1
    return f"{message} (and {rest} more)" if rest else message


def _validated(name: str, values: dict[str, Any], path: Path) -> Recipe:
    try:
        return Recipe.model_validate({"name": name, "paper": name, **values})
    except ValidationError as error:
        raise ValueError(one_line(error, Recipe, path)) from None


def _fields_at(kind: type[BaseModel], place: Iterable[str]) -> list[str]:
    inner: dict[str, type[BaseModel]] = {"columns": Column, "rows": Row}
    for step in place:
        kind = inner.get(step, kind)
    return list(kind.model_fields)
