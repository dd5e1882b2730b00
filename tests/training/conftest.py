"""A very small set of pictures with four domains and three classes, and settings to train on it in a second."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from styleshift.data.domains import Domains
from styleshift.data.protocols import Split
from styleshift.training.settings import Settings


@dataclass(frozen=True)
class Pictures:
    """Decoded images that are in memory already."""

    pixels: NDArray[np.uint8]
    key: str = "made"

    def take(self, indices: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(self.pixels[indices]).contiguous(memory_format=torch.channels_last)


@dataclass(frozen=True)
class Made:
    """A dataset, its images, and a split that leaves the last domain out."""

    dataset: Domains
    images: Pictures
    split: Split
    settings: Settings


@pytest.fixture(scope="session")
def made() -> Made:
    """Stripes whose width is the class, in a brightness and tint that is the domain; 96 images of 20 pixels."""
    numbers = np.arange(96)
    classes, domains = numbers % 3, numbers // 3 % 4
    noise = np.random.default_rng(0).integers(0, 60, (96, 3, 20, 20))
    stripes = np.sin(np.arange(20) * (0.4 + 0.6 * classes[:, None])) > 0
    pixels = (noise + 80 * stripes[:, None, None, :]) * (0.6 + 0.3 * domains[:, None, None, None])
    pixels[numbers, domains % 3] += 20
    names = tuple(f"{number}.png" for number in numbers)
    dataset = Domains("made", Path(), names, classes, domains, ("wide", "middle", "narrow"), ("a", "b", "c", "d"))
    source = domains < 3
    split = Split(
        train=numbers[source & (numbers < 72)],
        validation=numbers[source & (numbers >= 72)],
        test=numbers[~source],
        sources=(0, 1, 2),
        targets=(3,),
    )
    settings = Settings(
        backbone="smallnet",
        augment="mixstyle",
        balance=True,
        cache_size=20,
        image_size=16,
        epochs=3,
        batch_size=8,
        learning_rate=0.02,
        precision="float32",
        threads=1,
    )
    return Made(dataset, Pictures(pixels.clip(0, 255).astype(np.uint8)), split, settings)


@pytest.fixture(scope="session")
def half_precision() -> None:
    """Skips where a bfloat16 product kills the process: some virtual machines announce instructions that they lack."""
    product = "import torch; torch.randn(128, 64).bfloat16() @ torch.randn(64, 64).bfloat16()"
    if subprocess.run([sys.executable, "-c", product], check=False).returncode:
        pytest.skip("bfloat16 is an illegal instruction on this machine; ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 avoids it")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """One thread, and the number before afterwards: so small a network is slower on more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
