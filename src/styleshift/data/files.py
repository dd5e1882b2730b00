"""A dataset for torch's DataLoader that opens files, for transforms of one's own (torchvision's, say)."""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike
from PIL import Image
from torch.utils.data import Dataset

from styleshift.data.decoding import rgb
from styleshift.data.domains import Domains


class ImageFiles(Dataset[tuple[Any, int, int]]):
    """(transformed image, class, domain) for each image of a dataset; slower than the cache by the time of decoding.

    dataset: the images.
    transform: called with an RGB `PIL.Image`; what it gives is what the loader collates.
    indices: which images; None takes all.
    """

    def __init__(
        self, dataset: Domains, transform: Callable[[Image.Image], Any], indices: ArrayLike | None = None
    ) -> None:
        self.dataset = dataset if indices is None else dataset.only(indices)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, int, int]:
        image = self.transform(rgb(self.dataset.path(index)))
        return image, int(self.dataset.classes[index]), int(self.dataset.domains[index])
