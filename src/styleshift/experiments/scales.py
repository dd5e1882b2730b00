"""Scales: how long and how large the trainings of any recipe are. `recipes/scales.toml` is the one place that says so.

smoke        seconds, on generated images: does everything run?
quickstart   two minutes for a whole table of small images, from random weights
cpu          minutes on two cores: does the paper's effect show?
paper        the paper's own schedule
"""

import difflib
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from styleshift.experiments.recipe import Recipe, one_line, read_toml, scales_file


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Generated(_Part):
    """Images that are drawn instead of read: so many for each domain and class, of at most so many classes."""

    images: int = Field(ge=1)
    classes: int = Field(ge=2)
    size: int = Field(ge=8)


class Scale(_Part):
    """One scale.

    minutes: of a run with ResNet-18, for an estimate before anything is measured.
    seeds: run if nothing else is asked for.
    backbone: in place of the recipe's. pretrained: start from ImageNet weights.
    generated: draw images instead of reading the recipe's dataset. training: fields of `training.settings.Settings`.
    """

    name: str
    about: str
    minutes: float = Field(gt=0)
    seeds: list[int] = Field(min_length=1)
    backbone: str | None = None
    pretrained: bool = True
    generated: Generated | None = None
    training: dict[str, Any]


def scale_for(recipe: Recipe, asked: str | None) -> Scale:
    """The scale called `asked`, or the recipe's own where none is asked for."""
    return scale(asked or recipe.scale)


def scale(name: str) -> Scale:
    """The scale called `name`. KeyError with near names if there is none."""
    path = scales_file()
    known = read_toml(path)
    if name not in known:
        near = difflib.get_close_matches(name, known) or known
        raise KeyError(f"no scale {name!r}; did you mean one of {', '.join(near)}?")
    try:
        return Scale.model_validate({"name": name, **known[name]})
    except ValidationError as error:
        raise ValueError(one_line(error, Scale, f"{path}, [{name}]")) from None
