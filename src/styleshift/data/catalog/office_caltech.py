"""Office-Caltech10 (Gong et al., "Geodesic Flow Kernel", CVPR 2012): 4 sources of pictures × 10 classes.

Layout: domain/class/file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from styleshift.data.domains import Domains
from styleshift.data.facts import Facts
from styleshift.data.layouts import Names, home, tree

CLASSES = "back_pack bike calculator headphones keyboard laptop_computer monitor mouse mug projector"


@dataclass(frozen=True)
class OfficeCaltech:
    """Shop pictures, Caltech-256, and photos by a good and a poor camera; 2,533 images."""

    facts: ClassVar[Facts] = Facts(
        title="Office-Caltech10",
        folder="office_caltech",
        names=Names(
            domains=("amazon", "caltech", "dslr", "webcam"),
            classes=tuple(CLASSES.split()),
            spellings={"backpack": "back_pack", "laptop": "laptop_computer", "headphone": "headphones"},
        ),
        class_count=10,
        image_counts={"amazon": 958, "caltech": 1123, "dslr": 157, "webcam": 295},
        page="https://github.com/jindongwang/transferlearning (its list of datasets)",
        licence="none stated; research use",
    )

    def load(self, root: Path) -> Domains:
        """Office-Caltech10 in the folder `root`."""
        folder = home(root, self.facts.title, self.facts.names, self.facts.how)
        return tree(folder, self.facts.title, self.facts.names)
