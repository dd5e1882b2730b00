"""Test images with score, nearest domain and the prediction before and after the shift.

    Picture     one image and what was said of it
    Group       pictures of one kind, and how many there are of it in all
    grouped     images by what the shift did to them, some of each kind, spread evenly over all

Right → wrong is shown as honestly as wrong → right: as many pictures of each, and the whole count beside them.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from PIL import Image

SIDE = 112  # of a picture in the page
MOST_OF_A_KIND = 10


@dataclass(frozen=True)
class Picture:
    """name: of the file. image: a link that holds it. truth: None where it is not known.

    score: in spreads, None where it is beyond all numbers (one source).
    """

    name: str
    image: str
    truth: str | None
    before: str
    before_confidence: float
    after: str
    after_confidence: float
    score: float | None
    far: bool
    nearest: str

    @property
    def score_words(self) -> str:
        """The score as it is written."""
        return score_words(self.score)


@dataclass(frozen=True)
class Group:
    """Pictures of one kind. of: how many images there are of it in all."""

    name: str
    about: str
    of: int
    pictures: list[Picture]


class Said(NamedTuple):
    """What decides an image's kind; truth: None where it is not known."""

    truth: str | None
    before: str
    after: str
    far: bool


def grouped(said: Sequence[Said], picture: Callable[[int], Picture], most: int = MOST_OF_A_KIND) -> list[Group]:
    """Kinds that there are images of.

    picture: gives the one with this index; called for those that are shown alone.
    """
    kinds = [_kind(each) for each in said]
    groups = []
    for name, about in _KINDS.items():
        members = [index for index, kind in enumerate(kinds) if kind == name]
        if members:
            groups.append(Group(name, about, len(members), [picture(index) for index in spread_over(members, most)]))
    return groups


_KINDS = {
    "wrong → right": "mended by the shift",
    "right → wrong": "broken by the shift",
    "wrong before and after": "",
    "right before and after": "",
    "the class changed": "shifted, and told as another class",
    "shifted, the class stayed": "",
    "near the sources": "not shifted",
}


def _kind(said: Said) -> str:
    if said.truth is None:
        if not said.far:
            return "near the sources"
        return "shifted, the class stayed" if said.before == said.after else "the class changed"
    before, after = said.before == said.truth, said.after == said.truth
    if before == after:
        return "right before and after" if after else "wrong before and after"
    return "wrong → right" if after else "right → wrong"


def spread_over(members: Sequence[int], most: int) -> list[int]:
    """At most so many of `members`, evenly spread over them: no choice by hand, and the same at every call."""
    count = min(most, len(members))
    return [members[place * len(members) // count] for place in range(count)]


def score_words(score: float | None) -> str:
    """A score as it is written."""
    return "beyond all numbers" if score is None else f"{score:.2f}"


def thumbnail(image: Image.Image) -> str:
    """A small copy of a square image, as a link that holds it."""
    small = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    written = BytesIO()
    small.save(written, format="JPEG", quality=78, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"
