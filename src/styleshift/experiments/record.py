"""What is kept of a run: one JSON file that can be committed, sent, and read in again years later.

Accuracies in it are shares between 0 and 1. What is checked whenever one is read, and refused where it does not hold:
its key is the hash of the settings, images and first weights that it names; its dataset, domain, seed and method are
those of the settings; and its last entry, `sha256`, is that of everything else in it. Records of before that entry was
written have none, and nothing then tells whether their figures were edited. It is no signature: who edits a record can
hash it anew.
"""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from styleshift.experiments.keys import cell_of, hash_of, key_of, protocol_of
from styleshift.experiments.methods import settings_of

_DIGEST = "sha256"


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

    def with_tests_of(self, other: "Record") -> "Record":
        """This one with what `other` tested besides, where both tested one trained model; as it is, where not."""
        if _training_of(self) != _training_of(other):
            return self
        return self.model_copy(update={"shifts": other.shifts | self.shifts, "costs": other.costs | self.costs})

    def text(self) -> str:
        """As the file holds it, its checksum last."""
        plain = json.loads(self.model_dump_json(exclude=None if self.costs else {"costs"}))
        return json.dumps({**plain, _DIGEST: hash_of(plain)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def of_text(cls, text: str, where: object) -> "Record":
        """From what `text` gave. ValueError if it is no record, or not the one that was written."""
        try:
            plain = json.loads(text)
            digest = plain.pop(_DIGEST, None) if isinstance(plain, dict) else None
            record = cls.model_validate(plain)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where} is no record of a run: the whole: Invalid JSON: {error}") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ValueError(f"{where} is no record of a run: {place or 'the whole'}: {first['msg']}") from None
        if digest is not None and digest != hash_of(plain):
            raise ValueError(f"{where} was edited: it does not match its checksum. Restore or remove it")
        try:
            if edited := _edited(record):
                raise ValueError(f"{where} was edited: {edited}. Restore or remove it")
        except KeyError as unknown:
            raise ValueError(f"{where} is no record that this version can read: {unknown.args[0]}") from None
        return record


def _training_of(record: Record) -> tuple[object, ...]:
    """What a model keeps of its training, however often it is tested, and no second training has in common with it."""
    timing = record.timing
    return record.key, record.final_loss, record.epoch, record.threads, timing.training, timing.images_per_second


def _edited(record: Record) -> str | None:
    """What in it contradicts itself; None where nothing does."""
    if record.key != key_of(record.facts, record.data, record.weights):
        return "its key is not the hash of the settings in it"
    if (record.cell, record.protocol) != (cell_of(record.facts), protocol_of(record.facts)):
        return "its cell or protocol is not the hash of the settings in it"
    differing = (each for each in _said_twice(record) if each[1] != each[2])
    return next((f"its {name} is {said!r}, and by the settings in it {set_}" for name, said, set_ in differing), None)


def _said_twice(record: Record) -> Iterator[tuple[str, object, object]]:
    """What stands beside the facts and in them: its name, and both."""
    training = record.facts["training"]
    yield "dataset", record.dataset, record.facts["dataset"]
    yield "domain", record.domain, record.facts["domain"]
    yield "seed", record.seed, training["seed"]
    settings = settings_of(record.method)
    yield f"method {record.method}", settings, {name: training[name] for name in settings}


def records_in(folder: Path) -> dict[Path, Record]:
    """Every record in `folder` and below it, by file. FileNotFoundError, with near names, where there is no folder.

    Other files, as of a benchmark or of a model on streams, are passed over; what may be a record and is not whole is
    refused.
    """
    if not folder.is_dir():
        siblings = [path.name for path in folder.parent.iterdir()] if folder.parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, siblings)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise FileNotFoundError(f"no folder {folder} to read records from{hint}")
    texts = {path: text_of(path) for path in sorted(folder.rglob("*.json")) if _may_be_a_record(path)}
    return {path: Record.of_text(text, path) for path, text in texts.items()}


def text_of(path: Path) -> str:
    """What a record's file holds. ValueError where it is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no record of a run: it is not UTF-8 ({error}). Restore or remove it") from None


def _may_be_a_record(path: Path) -> bool:
    content = path.read_bytes()
    try:
        values = json.loads(content.decode())
    except UnicodeDecodeError:
        return b'"facts"' in content  # a damaged one; any other is somebody else's
    except ValueError:
        return True
    # a result on streams says the key of its model's record
    return isinstance(values, dict) and "played" not in values and not {"key", "cell", "facts"}.isdisjoint(values)
