"""What a training leaves behind: `model.safetensors`, the chosen weights and how they came about.

The weights have the network's own key names, so the file also serves wherever a file of weights does.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from styleshift.backbones.building import backbone
from styleshift.training.checkpoint import header_of, write_checkpoint
from styleshift.training.settings import Settings

FILE = "model.safetensors"


@dataclass(frozen=True)
class EpochFacts:
    """loss: mean over the epoch's steps. validation: accuracy on the sources' validation images, where it was asked."""

    loss: float
    validation: float | None = None


@dataclass(frozen=True)
class Trained:
    """The facts of a finished training.

    settings, data: what it was trained with; data is the fingerprint of pixels, labels and split.
    class_names, domain_names: of the head's outputs, and of the sources.
    history: one entry an epoch. epoch: the one whose weights were kept, from 1.
    images, seconds: seen and spent in training steps, over all resumed parts.
    """

    settings: Settings
    data: str
    class_names: tuple[str, ...]
    domain_names: tuple[str, ...]
    history: tuple[EpochFacts, ...]
    epoch: int
    images: int
    seconds: float

    def write(self, folder: Path, model: nn.Module) -> None:
        """Into `folder`, with the weights of `model`; whole or not at all."""
        facts = {**asdict(self), "settings": self.settings.plain()}
        write_checkpoint(folder / FILE, {"trained": facts, **model.state_dict()})

    @classmethod
    def read(cls, folder: Path) -> "Trained | None":
        """What was trained in `folder`, or None if nothing was finished there."""
        if not (folder / FILE).exists():
            return None
        facts = header_of(folder / FILE).get("trained")
        if facts is None:
            raise ValueError(f"{folder / FILE} was not written by a training of ours; move it away to train here")
        return cls(
            **{
                **facts,
                "settings": Settings.of(facts["settings"]),
                "class_names": tuple(facts["class_names"]),
                "domain_names": tuple(facts["domain_names"]),
                "history": tuple(EpochFacts(**epoch) for epoch in facts["history"]),
            }
        )

    def model(self, folder: Path) -> nn.Module:
        """The trained network, in eval mode."""
        return backbone(self.settings.backbone, classes=len(self.class_names), weights=folder / FILE).eval()


def expect_same(path: Path, found: Mapping[str, Any], data_found: str, settings: Settings, data: str) -> None:
    """ValueError, in one line that says what differs, unless `path` was written with these settings and data."""
    wanted = settings.plain()
    names = sorted({*found, *wanted})
    differences = [
        f"{name} is {found.get(name)!r} there and {wanted.get(name)!r} here"
        for name in names
        if found.get(name) != wanted.get(name)
    ]
    if data_found != data:
        differences.append("the images, labels or split differ")
    if differences:
        raise ValueError(
            f"{path} belongs to another training: {'; '.join(differences)}. Choose another folder, or remove that file"
        )
