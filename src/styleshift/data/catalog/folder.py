"""A folder tree of the user's own: domain/class/file, as many domains and classes as there are folders."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from styleshift.data.domains import Domains
from styleshift.data.facts import Facts
from styleshift.data.layouts import tree


@dataclass(frozen=True)
class Folder:
    """Images in domain/class/file; a domain may lack classes."""

    facts: ClassVar[Facts] = Facts(title="Folder")

    def load(self, root: Path) -> Domains:
        """The tree below `root`; the dataset's name is the folder's."""
        return tree(root, root.resolve().name)
