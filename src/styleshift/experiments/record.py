"""What is kept of a run: one JSON file that can be committed, sent, and read in again years later.

Accuracies in it are shares between 0 and 1. A record proves itself: its key is the hash of the settings that it holds,
so one that was edited, or cut short, is refused.
"""

import difflib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from styleshift.experiments.keys import cell_of, key_of, protocol_of


class Tested(BaseModel):
    """One way of testing.

    shifted: share of test samples that were shifted. nearest: share of them all whose nearest source was each.
    per_class, per_domain: accuracy by name; None where there was no image. calibration_error: over 15 bins (ECE).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    accuracy: float
    macro_f1: float
    worst_domain: float
    calibration_error: float
    per_class: dict[str, float | None]
    per_domain: dict[str, float]
    shifted: float
    nearest: dict[str, float]


class Timing(BaseModel):
    """Seconds of wall clock. training: over all resumed parts. images_per_second: in training."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    finished: str
    training: float
    evaluation: float
    images_per_second: float


class Record(BaseModel):
    """A run's results and everything they depend on.

    key, cell, protocol: see `styleshift.experiments.keys`. recipe: the one it was first run for.
    domain: the column; target: the domains tested on. images: tested on. oracle: whether target labels chose anything.
    accuracy, per_class, macro_f1, worst_domain, calibration_error: of the model as it is; shifts: of every other way.
    validation: accuracy on the sources' validation images, with and without the shift.
    costs: milliseconds an image of those ways of testing whose time a recipe asked for; not in the file if none did.
    final_loss: mean of the last epoch. facts: see `planning.Run.facts`. threads: of torch.
    weights, data: sha256 of the first weights (None: random ones) and of the images.
    commit: of the source tree, where it is one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    cell: str
    protocol: str
    recipe: str
    scale: str
    dataset: str
    method: str
    domain: str
    target: list[str]
    seed: int
    images: int
    oracle: bool = False
    accuracy: float
    macro_f1: float
    worst_domain: float
    calibration_error: float
    per_class: dict[str, float | None]
    per_domain: dict[str, float]
    shifts: dict[str, Tested]
    costs: dict[str, float] = {}
    validation: dict[str, float]
    final_loss: float
    epoch: int
    timing: Timing
    facts: dict[str, Any]
    threads: int
    weights: str | None
    data: str
    versions: dict[str, str]
    commit: str | None

    def accuracy_of(self, shift: str) -> float | None:
        """With this shift, by its full name; None where it was not tested."""
        if shift == "none":
            return self.accuracy
        tested = self.shifts.get(shift)
        return tested.accuracy if tested else None

    def text(self) -> str:
        """As the file holds it."""
        return self.model_dump_json(indent=1, exclude=None if self.costs else {"costs"}) + "\n"

    @classmethod
    def of_text(cls, text: str, where: object) -> "Record":
        """From what `text` gave. ValueError if it is no record, or not the one its key says."""
        try:
            record = cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ValueError(f"{where} is no record of a run: {place or 'the whole'}: {first['msg']}") from None
        if record.key != key_of(record.facts, record.data, record.weights):
            raise ValueError(f"{where} was edited: its key is not the hash of the settings in it. Restore or remove it")
        if (record.cell, record.protocol) != (cell_of(record.facts), protocol_of(record.facts)):
            raise ValueError(f"{where} was edited: its cell or protocol is not the hash of the settings in it")
        return record


def records_in(folder: Path) -> dict[Path, Record]:
    """Every record in `folder` and below it, by file. FileNotFoundError, with near names, where there is no folder.

    Other JSON, as of a benchmark or of a model on streams, is passed over; what may be a record and is not whole is
    refused.
    """
    if not folder.is_dir():
        siblings = [path.name for path in folder.parent.iterdir()] if folder.parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, siblings)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise FileNotFoundError(f"no folder {folder} to read records from{hint}")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.json"))}
    return {path: Record.of_text(text, path) for path, text in texts.items() if _may_be_a_record(text)}


def _may_be_a_record(text: str) -> bool:
    try:
        content = json.loads(text)
    except ValueError:
        return True
    # a result on streams says the key of its model's record
    return isinstance(content, dict) and "played" not in content and not {"key", "cell", "facts"}.isdisjoint(content)
