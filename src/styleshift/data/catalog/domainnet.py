"""DomainNet (Peng et al., "Moment Matching", ICCV 2019), cleaned: 6 styles × 345 classes; in the paper's appendix.

Layout: domain/class/file, with the authors' `<domain>_train.txt` and `<domain>_test.txt` beside them or in `splits`.
The mirror keeps the two apart, so a set from there has the lists, too.

Reading: the authors publish two lists a domain. The train list is trained on; the test list of a source chooses the
model, and that of a target is what is tested. Without the lists there is no official split.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from styleshift.data.domains import Domains, Indices
from styleshift.data.facts import Facts, Mirror
from styleshift.data.layouts import Names, home, tree


@dataclass(frozen=True)
class DomainNet:
    """Clipart, infographics, paintings, quick drawings, photos and sketches; 586,575 images."""

    facts: ClassVar[Facts] = Facts(
        title="DomainNet",
        folder="domainnet",
        names=Names(domains=("clipart", "infograph", "painting", "quickdraw", "real", "sketch")),
        class_count=345,
        image_counts={
            "clipart": 48129,
            "infograph": 51605,
            "painting": 72266,
            "quickdraw": 172500,
            "real": 172947,
            "sketch": 69128,
        },
        page="https://ai.bu.edu/M3SDA/",
        licence="fair use for research, no commercial use (copyrights stay with the pictures' owners)",
        mirror=Mirror(
            "wltjr1007/DomainNet", rows=586575, revision="ee20570ae7a29c51571e55a9a17983f7625295d6", lists=True
        ),
    )

    def load(self, root: Path) -> Domains:
        """DomainNet in the folder `root`, with the authors' lists where they are there."""
        folder = home(root, self.facts.title, self.facts.names, self.facts.how)
        dataset = tree(folder, self.facts.title, self.facts.names)
        return replace(dataset, lists=_lists(dataset, folder))


def _lists(dataset: Domains, folder: Path) -> Indices | None:
    """The authors' lists; None unless all are there."""
    places = [place for place in (folder, folder.parent, folder / "splits", folder.parent / "splits") if place.is_dir()]
    number = {file: index for index, file in enumerate(dataset.files)}
    lists = np.zeros((len(dataset), 3), dtype=np.int64)
    for domain in dataset.domain_names:
        for kind, columns in (("train", [0]), ("test", [1, 2])):
            name = f"{domain}_{kind}.txt"
            path = next((place / name for place in places if (place / name).is_file()), None)
            if path is None:
                return None
            files = [line.rsplit(" ", 1)[0] for line in path.read_text().splitlines() if line.strip()]
            missing = [file for file in files if file not in number]
            if missing:
                raise ValueError(f"{path}: {len(missing)} of {len(files)} images are missing, {missing[0]} for one.")
            lists[np.ix_([number[file] for file in files], columns)] = 1
    return lists
