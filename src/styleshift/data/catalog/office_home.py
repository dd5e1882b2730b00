"""Office-Home (Venkateswara et al., "Deep Hashing Network", CVPR 2017): 4 styles × 65 classes; in the paper's appendix.

Two layouts are in use and both are read: domain/class/file (the authors'), and domain/part/class/file with parts
train and val (the style-augmentation papers'), where a target is tested on both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from styleshift.data.domains import Domains
from styleshift.data.facts import Facts, Mirror
from styleshift.data.layouts import Names, home, tree

CLASSES = """
Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles Chair Clipboards Computer Couch
Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet Flipflops Flowers Folder Fork Glasses Hammer Helmet Kettle
Keyboard Knives Lamp_Shade Laptop Marker Monitor Mop Mouse Mug Notebook Oven Pan Paper_Clip Pen Pencil
Postit_Notes Printer Push_Pin Radio Refrigerator Ruler Scissors Screwdriver Shelf Sink Sneakers Soda Speaker Spoon TV
Table Telephone ToothBrush Toys Trash_Can Webcam
"""


@dataclass(frozen=True)
class OfficeHome:
    """Art, clipart, product pictures and photos of things in offices and homes; 15,588 images."""

    facts: ClassVar[Facts] = Facts(
        title="Office-Home",
        folder="office_home",
        names=Names(
            domains=("art", "clipart", "product", "real_world"), classes=tuple(sorted(CLASSES.split(), key=str.lower))
        ),
        class_count=65,
        image_counts={"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357},
        page="https://www.hemanthdv.org/officeHomeDataset.html",
        licence="research and education, no commercial use",
        mirror=Mirror("flwrlabs/office-home", rows=15588),
    )

    def load(self, root: Path) -> Domains:
        """Office-Home in the folder `root`, in either layout."""
        folder = home(root, self.facts.title, self.facts.names, self.facts.how)
        return tree(folder, self.facts.title, self.facts.names)
