"""VLCS (Fang et al., "Unbiased Metric Learning", ICCV 2013): 4 photo collections × 5 classes; paper Table 3.

Two layouts are in use and both are read: domain/part/class/file with numbered classes and parts full, train, crossval
and test (the style-augmentation papers'), and domain/class/file (DomainBed's).

Reading: in the first layout train and crossval are the published train and validation lists, and a target is tested
on its test part.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from styleshift.data.domains import Domains
from styleshift.data.facts import Facts, Mirror
from styleshift.data.layouts import Names, home, tree

OTHER_NAMES = {"Caltech101": "caltech", "VOC2007": "pascal", "SUN09": "sun"}
CLASSES = ("bird", "car", "chair", "dog", "person")


@dataclass(frozen=True)
class VLCS:
    """Caltech101, LabelMe, PASCAL VOC2007 and SUN09; 10,729 photos."""

    facts: ClassVar[Facts] = Facts(
        title="VLCS",
        folder="vlcs",
        names=Names(
            domains=("caltech", "labelme", "pascal", "sun"),
            classes=CLASSES,
            spellings=OTHER_NAMES | {str(number): name for number, name in enumerate(CLASSES)},
        ),
        class_count=5,
        image_counts={"caltech": 1415, "labelme": 2656, "pascal": 3376, "sun": 3282},
        page="https://github.com/facebookresearch/DomainBed (its download script)",
        licence="none stated for the whole; research use",
        mirror=Mirror("ai22mtech12002/DG_VLCS", rows=10729, unofficial=True),
    )

    def load(self, root: Path) -> Domains:
        """VLCS in the folder `root`, in either layout."""
        folder = home(root, self.facts.title, self.facts.names, self.facts.how)
        return tree(folder, self.facts.title, self.facts.names)
