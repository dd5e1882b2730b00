"""What is known about a dataset without having it: names, counts, terms, and where to get it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from styleshift.data.domains import Domains
from styleshift.data.layouts import Names


@dataclass(frozen=True)
class Mirror:
    """A public Hugging Face dataset repository with the images inside parquet files.

    repository: its id, "owner/name".
    revision: the commit or branch to take.
    files: which of its files hold the images, as a glob pattern.
    rows: how many images they hold together.
    columns: the columns that hold image, domain and class.
    unofficial: uploaded by somebody who is neither an author nor a known maintainer of the set.
    lists: whether its files' names begin with the published list that their images are on (`train-`, `test-`).
    """

    repository: str
    rows: int
    revision: str = "main"
    files: str = "data/*.parquet"
    columns: tuple[str, str, str] = ("image", "domain", "label")
    unofficial: bool = False
    lists: bool = False


@dataclass(frozen=True)
class Facts:
    """A dataset's names, counts and terms.

    title: its name as people write it.
    folder: its folder below the data root.
    names: its domains and classes.
    class_count: K.
    image_counts: how many images each domain has, by domain name.
    page: where its authors offer it.
    licence: on what terms, as far as stated.
    mirror: where `styleshift data get` takes it from; None where there is no such place.
    dropped: images left out by name, and why.
    packages: those that its images come with, so that it is made here; empty for a set that has to be got.
    """

    title: str
    folder: str = ""
    names: Names = field(default_factory=Names)
    class_count: int = 0
    image_counts: Mapping[str, int] = field(default_factory=dict)
    page: str = ""
    licence: str = "your own"
    mirror: Mirror | None = None
    dropped: Mapping[str, str] = field(default_factory=dict)
    packages: str = ""

    @property
    def how(self) -> str:
        """How to come by the dataset, in a sentence or two."""
        if self.packages:
            return f"Get it with `pip install 'styleshift[demo]'`: its images come with {self.packages}."
        name = self.folder or self.title.lower()
        offer = f"Get it with `styleshift data get {name}`, or from" if self.mirror else "Get it from"
        return f"{offer} {self.page}, and take it in with `styleshift data import FILE --as {name}`."


@runtime_checkable
class Catalogued(Protocol):
    """What every file of the catalog holds: a dataset that can be loaded."""

    facts: ClassVar[Facts]

    def load(self, root: Path) -> Domains:
        """The dataset in the folder `root`."""


@runtime_checkable
class Made(Protocol):
    """A dataset whose images come with installed packages."""

    def make(self, root: Path) -> None:
        """Write its images below `root`, where they are not there yet."""
