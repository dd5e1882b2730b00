"""The sources as a training sees them: images, classes and domains of its train and validation parts, and nothing else.

`SourceData` has no rows of the target and no way to ask for them. Everything in a training below its first line works
on one of these, so no choice can be made with target labels, by construction.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from styleshift.data import transforms
from styleshift.data.batch import Batch
from styleshift.data.domains import Domains
from styleshift.data.transforms import Transform
from styleshift.training.settings import Settings


@runtime_checkable
class Images(Protocol):
    """Decoded images, taken by index: `styleshift.data.cache.Decoded`, or anything that can do the same."""

    @property
    def key(self) -> str:
        """Names the content."""

    def take(self, indices: NDArray[np.int64]) -> Tensor:
        """uint8 `[B, 3, size, size]`."""


@runtime_checkable
class Parts(Protocol):
    """A split's indices that training reads: `styleshift.data.protocols.Split` has these and the test part besides."""

    @property
    def train(self) -> NDArray[np.int64]:
        """Images to learn from."""

    @property
    def validation(self) -> NDArray[np.int64]:
        """Images of the sources to choose a model by."""


def transform_of(settings: Settings) -> Transform:
    """The settings' transform, with their sizes."""
    sizes = {"cache_size": settings.cache_size, "size": settings.image_size}
    kind = type(transforms.transform(settings.transform))
    return kind(**{name: size for name, size in sizes.items() if size is not None})


@dataclass(frozen=True)
class Part:
    """Some images of the sources; `classes` and `domains` by row, domains counted 0..N-1 over the sources alone."""

    images: Images
    indices: NDArray[np.int64]
    classes: Tensor
    domains: Tensor

    def __len__(self) -> int:
        return len(self.indices)

    def training_batch(self, rows: Tensor, transform: Transform, generator: torch.Generator) -> Batch:
        """These rows, augmented."""
        images = transform.train(self.images.take(self.indices[rows.numpy()]), generator)
        return Batch(images, self.classes[rows], self.domains[rows])

    def test_batches(self, transform: Transform, batch_size: int) -> Iterator[Batch]:
        """All rows in order, as they are tested."""
        for first in range(0, len(self), batch_size):
            rows = slice(first, first + batch_size)
            yield Batch(transform.test(self.images.take(self.indices[rows])), self.classes[rows], self.domains[rows])


@dataclass(frozen=True)
class SourceData:
    """All that a training may see.

    class_names: K names. domain_names: of the N sources, in the order that domain ids count.
    """

    train: Part
    validation: Part
    class_names: tuple[str, ...]
    domain_names: tuple[str, ...]

    @classmethod
    def of(cls, dataset: Domains, images: Images, split: Parts) -> "SourceData":
        """The train and validation parts of `split`. ValueError where there is nothing to learn from."""
        if len(split.train) == 0:
            raise ValueError(f"nothing to train on: the split's train part of {dataset.name} is empty")
        sources = np.unique(dataset.domains[split.train])
        stray = np.setdiff1d(dataset.domains[split.validation], sources)
        if len(stray):
            names = [dataset.domain_names[domain] for domain in stray]
            raise ValueError(f"validation images come from domains that are not trained on: {', '.join(names)}")
        return cls(
            train=_part(dataset, images, split.train, sources),
            validation=_part(dataset, images, split.validation, sources),
            class_names=dataset.class_names,
            domain_names=tuple(dataset.domain_names[domain] for domain in sources),
        )

    @property
    def fingerprint(self) -> str:
        """Changes with the pixels, the labels, and which images are in which part."""
        digest = hashlib.sha256(self.train.images.key.encode())
        for part in (self.train, self.validation):
            for values in (part.indices, part.classes.numpy(), part.domains.numpy()):
                digest.update(f"{len(values)}:".encode())
                digest.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
        digest.update("\n".join((*self.class_names, "", *self.domain_names)).encode())
        return digest.hexdigest()


def _part(dataset: Domains, images: Images, indices: NDArray[np.int64], sources: NDArray[np.int64]) -> Part:
    domains = np.searchsorted(sources, dataset.domains[indices])
    return Part(images, indices, torch.from_numpy(dataset.classes[indices]), torch.from_numpy(domains))
