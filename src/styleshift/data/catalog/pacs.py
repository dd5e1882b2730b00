"""PACS (Li et al., "Deeper, Broader and Artier Domain Generalization", ICCV 2017): 4 styles × 7 classes.

Nearly all of the paper's tables are about it. Layout: domain/class/file, as in the authors' archive `kfold`. The
published lists and a digest of every image's pixels come with the package (`pacs.manifest.gz`), so a copy without the
lists will do.

Reading: an image's class is its folder. The lists' numbers run 1..7, but one row of `art_painting_crossval` says 0.
Reading: the published lists are taken as they are: `art_painting/dog/pic_248.jpg` stands twice in crossval
and counts twice in validation, as in everybody's runs; `pic_249.jpg`, in neither list, is only ever a test image.
"""

import logging
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from styleshift.data.domains import Domains
from styleshift.data.facts import Facts, Mirror
from styleshift.data.layouts import Names, home, tree
from styleshift.data.manifests import Manifest, read_manifest

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PACS:
    """Photo, art painting, cartoon and sketch; 9,990 images of 227×227, one known bad image left out."""

    facts: ClassVar[Facts] = Facts(
        title="PACS",
        folder="pacs",
        names=Names(
            domains=("art_painting", "cartoon", "photo", "sketch"),
            classes=("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
        ),
        class_count=7,
        image_counts={"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929},
        page="https://sketchx.eecs.qmul.ac.uk/downloads/",
        licence="none stated; research use",
        mirror=Mirror("flwrlabs/pacs", rows=9991),
        dropped={"sketch/dog/n02103406_4068-1.png": "a drawing of the word ERROR"},
    )

    def load(self, root: Path) -> Domains:
        """PACS in the folder `root`, with the published lists; ValueError when images are missing."""
        there = self.found(root)
        manifest = self.manifest()
        missing = sorted(set(manifest.files) - set(there.files))
        if missing:
            raise ValueError(
                f"PACS in {there.root} lacks {len(missing)} of its {len(manifest.files)} images, {missing[0]} for one. "
                f"{self.facts.how}"
            )
        row = {file: index for index, file in enumerate(manifest.files) if file not in self.facts.dropped}
        log.info("PACS: left out %s", "; ".join(f"{file} ({why})" for file, why in self.facts.dropped.items()))
        kept = np.array([index for index, file in enumerate(there.files) if file in row])
        lists = manifest.lists[[row[there.files[index]] for index in kept]]
        return replace(there.only(kept), lists=lists)

    def found(self, root: Path) -> Domains:
        """Every image below `root`, the known bad one too, complete or not."""
        folder = home(root, self.facts.title, self.facts.names, self.facts.how)
        return tree(folder, self.facts.title, self.facts.names)

    def manifest(self) -> Manifest:
        """Names, pixel digests and published lists of the 9,991 images."""
        return _manifest()


@cache
def _manifest() -> Manifest:
    return read_manifest(Path(__file__).with_name("pacs.manifest.gz"))
