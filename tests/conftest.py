"""What every test runs under: shapes checked in `styleshift`, two threads; and what several tests want."""

import copy
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import install_import_hook
from torch import Tensor, nn

ROOT = Path(__file__).parents[1]

install_import_hook("styleshift", "beartype.beartype")
torch.set_num_threads(2)
# a shell's background job ignores Ctrl-C, and would hand that on to the processes that tests start and interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)


class SmallConvNet(nn.Module):
    """Blocks of 8, 16 and 24 channels and a head for 5 classes; without batch norm, so no sample sees another."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.block1 = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
        self.block2 = nn.Sequential(nn.Conv2d(16, 24, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(24, 5)

    def forward(self, images: Tensor) -> Tensor:
        features = self.block2(self.block1(self.relu(self.stem(images))))
        logits: Tensor = self.head(features.mean(dim=(2, 3)))
        return logits


class TwiceNet(nn.Module):
    """A model whose `block` runs twice in one forward."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Conv2d(3, 3, 1)
        self.head = nn.Linear(3, 2)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.block(self.block(images)).mean(dim=(2, 3)))
        return logits


@pytest.fixture
def conv_net() -> SmallConvNet:
    """A small network in eval mode, always with the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return SmallConvNet().eval()


@pytest.fixture
def twice_net() -> TwiceNet:
    """A model whose `block` runs twice, in eval mode."""
    return TwiceNet().eval()


@pytest.fixture
def state_of() -> Callable[[nn.Module], object]:
    """Gives everything in every module's __dict__, dicts by value."""

    def read(model: nn.Module) -> object:
        return [
            (name, {key: copy.copy(value) for key, value in vars(part).items()}) for name, part in model.named_modules()
        ]

    return read


@pytest.fixture
def images() -> Tensor:
    """Four images `[4, 3, 16, 16]`, always the same."""
    return torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def batches() -> list[tuple[Tensor, Tensor, list[str]]]:
    """Three domains of six images each; they differ in brightness and contrast."""
    looks = {"art": (0.5, 0.0), "cartoon": (1.5, 1.0), "photo": (1.0, -1.0)}
    classes = torch.arange(6) % 2
    drawn = torch.randn(3, 6, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    return [
        (images * contrast + brightness, classes, [name] * 6)
        for images, (name, (contrast, brightness)) in zip(drawn, looks.items(), strict=True)
    ]


@pytest.fixture
def unseen() -> Tensor:
    """Two images like the sources' and three of a style they have never seen."""
    near, far = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(2)).split((2, 3))
    return torch.cat([near, far * torch.tensor([4.0, 6.0, 9.0])[:, None, None, None] + 5])


@pytest.fixture(scope="session")
def whitened_scores() -> Callable[[Sequence[Tensor], Tensor], list[float]]:
    """Eq. 7's scores of some styles with Mahalanobis distances, literally; given the styles of every domain's images.

    Deviations count by their logarithms. The covariance is that about the domains' means, its entries off the diagonal
    less a tenth. Of its variances none counts as less than a millionth of the largest.
    """

    def logged(styles: Tensor) -> np.ndarray:
        half = styles.shape[1] // 2
        rows = styles.double().numpy()
        return np.concatenate([rows[:, :half], np.log(np.maximum(rows[:, half:], 1e-3))], axis=1)

    def scores(domains: Sequence[Tensor], styles: Tensor) -> list[float]:
        every = [logged(rows) for rows in domains]
        centres = [rows.mean(axis=0) for rows in every]
        apart = [row - centre for rows, centre in zip(every, centres, strict=True) for row in rows]
        covariance = sum(np.outer(row, row) for row in apart) / len(apart)
        shrunk = 0.9 * covariance + 0.1 * np.diag(np.diag(covariance))
        variances, directions = np.linalg.eigh(shrunk)
        variances = np.maximum(variances, 1e-3 * variances.max())

        def gap(one: np.ndarray, other: np.ndarray) -> float:
            return float(np.sqrt(((directions.T @ (one - other)) ** 2 / variances).sum()))

        middle = sum(centres) / len(centres)
        spread = sum(gap(middle, centre) for centre in centres) / len(centres)
        return [sum(gap(row, centre) for centre in centres) / len(centres) / spread for row in logged(styles)]

    return scores


@pytest.fixture(scope="session")
def plain_python() -> Callable[[str], str]:
    """Runs code in a process of its own, without the import hook and with warnings as errors; gives what it printed.

    For what the hook would disturb (torch.compile, torch.export) and for what only a fresh process shows (imports).
    """

    def run(code: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def pacs_root() -> Path:
    """The real PACS; the test is skipped, and says so, where it is not."""
    root = Path(os.environ.get("STYLESHIFT_DATA", "data")) / "pacs"
    if not root.is_dir():
        pytest.skip(f"no PACS in {root}: set STYLESHIFT_DATA to run this test")
    return root


@pytest.fixture
def expect_same_in_threads() -> Callable[..., None]:
    """That a model answers each of some batches in a thread of its own, all at once, as it does one after the other."""

    def expect(model: nn.Module, parts: Sequence[Tensor]) -> None:
        with torch.no_grad():
            wanted = [model(part) for part in parts]
        wrong: list[BaseException] = []

        def run(part: Tensor, answer: Tensor) -> None:
            try:
                with torch.no_grad():
                    for _ in range(20):
                        torch.testing.assert_close(model(part), answer)
            except (AssertionError, ValueError) as error:
                wrong.append(error)

        threads = [threading.Thread(target=run, args=pair) for pair in zip(parts, wanted, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    return expect
