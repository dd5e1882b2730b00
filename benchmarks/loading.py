"""What the data costs a training at the cpu scale, and what reading files image by image would cost instead.

`scripts/bench loading`, on real PACS: wall clock, stretches of both ways to train in turns in one process.

    cached    batches from the decoded cache, augmented in one piece; the share of a step that this takes
    files     torchvision-style: every image opened, decoded, resized, cropped, flipped and jittered by itself, in
              DataLoader workers, into a float32 training

Workers run only while files are measured, and what they had read before the clock started is not counted: else they
would read ahead on the cached training's time.
"""

import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import styleshift
from benchmarks.planning import seconds_of, training_step
from styleshift.backbones import zoo
from styleshift.data.cache import decoded
from styleshift.data.domains import Domains
from styleshift.data.protocols import leave_one_domain_out
from styleshift.data.roots import dataset
from styleshift.data.transforms import MEAN, STD, Light
from styleshift.training.allocating import freed_memory_kept
from styleshift.training.source_data import SourceData

BATCH = 128
STRETCH = 6  # steps of one kind before it is the other's turn


@dataclass(frozen=True)
class Loading:
    """Medians: seconds a batch and a step take; images a second from the cache and from files."""

    cached_batch: float
    step: float
    cached_images_per_second: float
    files_images_per_second: float

    @property
    def share(self) -> float:
        """Of the whole that goes into loading from the cache."""
        return self.cached_batch / (self.cached_batch + self.step)

    @property
    def ratio(self) -> float:
        """How many times faster than from files."""
        return self.cached_images_per_second / self.files_images_per_second

    def __str__(self) -> str:
        return (
            f"cached: {self.cached_images_per_second:.0f} images/s, {100 * self.share:.1f} % of the time in loading\n"
            f"files:  {self.files_images_per_second:.0f} images/s, float32; the cache is {self.ratio:.1f} times as fast"
        )


def compare(rounds: int, workers: int = 2) -> Loading:
    """Both ways to train, in turns."""
    pacs, how = dataset("pacs"), Light()
    split = leave_one_domain_out(pacs, "sketch")
    part = SourceData.of(pacs, decoded(pacs, how.cache_size), split).train
    files = _files(pacs, split.train.tolist(), how, workers)
    generator = torch.Generator().manual_seed(0)
    fixed = part.training_batch(torch.arange(BATCH), how, generator)
    cached_step, float32_step = training_step(fixed.images, fixed.classes), _float32_step()
    batches, steps, whole = [], [], []
    for _ in range(max(1, rounds // STRETCH)):
        whole += _from_files(files, float32_step)
        with freed_memory_kept():  # as our own training does it
            cached_step()
            for _ in range(STRETCH):
                rows = torch.randint(len(part), (BATCH,), generator=generator)
                batches.append(seconds_of(partial(part.training_batch, rows, how, generator)))
                steps.append(seconds_of(cached_step))
    batch, step, file = (statistics.median(taken) for taken in (batches, steps, whole))
    return Loading(batch, step, BATCH / (batch + step), BATCH / file)


def _from_files(files: DataLoader[Any], step: Any) -> list[float]:
    """Seconds of some steps, of their loading too, once the workers are no longer ahead; they are gone afterwards."""
    loaded = iter(files)
    ahead = files.num_workers * (files.prefetch_factor or 0)
    seconds = [seconds_of(lambda: step(*next(loaded))) for _ in range(ahead + STRETCH)]
    return seconds[ahead:]


class _Files(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """One image after the other, as a user of torchvision would write it."""

    def __init__(self, domains: Domains, rows: list[int], how: Light) -> None:
        zoo.imported("torchvision")
        from torchvision import transforms

        self.paths = [Path(domains.path(row)) for row in rows]
        self.classes = [int(domains.classes[row]) for row in rows]
        self.transform = transforms.Compose(
            [
                transforms.Resize(how.cache_size),
                transforms.RandomCrop(how.size),
                transforms.RandomHorizontalFlip(),
                transforms.ColorJitter(brightness=how.brightness),
                transforms.RandomGrayscale(how.grey),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        from PIL import Image

        with Image.open(self.paths[row]) as image:
            return self.transform(image.convert("RGB")), self.classes[row]


def _files(domains: Domains, rows: list[int], how: Light, workers: int) -> DataLoader[Any]:
    files = _Files(domains, rows, how)
    return DataLoader(files, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=workers)


def _float32_step() -> Any:
    model: nn.Module = styleshift.backbone("resnet18", classes=7)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 0.005, momentum=0.9, weight_decay=5e-4)

    def step(images: Tensor, classes: Tensor) -> None:
        loss = cross_entropy(model(images), classes)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    return step
