"""What a training at the paper's size keeps resident: ResNet-18 at 224 pixels with MixStyle and style balancing.

`scripts/bench memory`: a few steps of the lab's own training, each case in a process of its own, whose peak of resident
memory is read at its end. Images are few here, so the peak is nearly all beyond their memory map; what of the map
is resident is counted all the same. Linux only: the peak is VmHWM of /proc/self/status.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from styleshift.data.cache import decoded
from styleshift.data.protocols import leave_one_domain_out
from styleshift.data.transforms import transform
from styleshift.experiments.generated import generated
from styleshift.experiments.scales import Generated, scale
from styleshift.training.allocating import freed_memory_kept
from styleshift.training.run import Run
from styleshift.training.settings import Settings
from styleshift.training.source_data import SourceData

CASES = (("bfloat16", 128), ("float32", 64))
LIMIT = 4.0  # GiB: a training has to fit beside others into a small machine
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Memory:
    """gib: the peak of resident memory, Python and libraries included. steps: that were trained."""

    precision: str
    batch: int
    steps: int
    gib: float

    def __str__(self) -> str:
        return f"{self.precision}, batch {self.batch}: at most {self.gib:.2f} GiB resident (limit {LIMIT:g})"


def compare(steps: int) -> list[Memory]:
    """Each case, one after the other."""
    return [_alone(precision, batch, steps) for precision, batch in CASES]


def trained(precision: str, batch: int, steps: int, backbone: str = "resnet18") -> Memory:
    """The peak of this process after so many steps."""
    asked = {"backbone": backbone, "augment": "mixstyle", "balance": True, "precision": precision, "batch_size": batch}
    settings = Settings.of({**scale("paper").training, **asked})
    torch.set_num_threads(settings.threads)
    with tempfile.TemporaryDirectory() as folder, freed_memory_kept():  # as a training does
        run = Run(settings, _sources(batch, settings, Path(folder)), weights=None)
        for _ in range(steps):
            run.take_step()
        run.close()
    return Memory(precision, batch, steps, round(_peak(), 2))


def _sources(batch: int, settings: Settings, folder: Path) -> SourceData:
    """Drawn images, enough for one batch."""
    size = transform(settings.transform).cache_size
    # three sources of seven classes, two thirds of each to train on
    amount = Generated(images=3 * -(-batch // (3 * 7 * 2)), classes=7, size=size)
    images = generated("pacs", ("art_painting", "cartoon", "photo", "sketch"), amount, folder)
    return SourceData.of(images, decoded(images, size, folder), leave_one_domain_out(images, "sketch"))


def _alone(precision: str, batch: int, steps: int) -> Memory:
    command = [sys.executable, "-m", "benchmarks.memory", precision, str(batch), str(steps)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Memory(**json.loads(done.stdout))


def _peak() -> float:
    """In GiB. Not getrusage: what that gives begins with the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


if __name__ == "__main__":
    print(json.dumps(vars(trained(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
