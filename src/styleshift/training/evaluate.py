"""Every way of testing from one forward: the model as it is and all shifted ones (paper Sec. 4.2 and its ablations).

    evaluate      metrics, share shifted and nearest domains of every row, from one pass over the test images
    accuracy_of   of the model as it is

Where a layer shifts, the shifted maps are added to the batch, and the rest of the network sees the plain and all
shifted samples together. Rows that differ only in alpha share one rendering: their prediction is the shifted one where
the sample is farther than their alpha, and the plain one elsewhere. Only samples that some row needs are rendered.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Integer
from torch import Tensor, nn

from styleshift.adapting import Adapter, adapter_of
from styleshift.data.batch import Batch
from styleshift.sources import SourceStyles
from styleshift.style.shapes import Centres, Distances
from styleshift.style.shifting import Variant, are_far, gaps, target_style
from styleshift.style.statistics import restyle, style_of
from styleshift.training.metrics import Metrics, Predictions, metrics_of, predictions_of
from styleshift.training.settings import Precision
from styleshift.training.variants import ShiftRow
from styleshift.twins import Hook

MAX_SAMPLES = 384  # plain and shifted together in one forward: about 2 GB at 224 pixels


@dataclass(frozen=True)
class RowResult:
    """What one row of a table says of one target.

    shifted: share of samples that were shifted.
    nearest: share of samples, shifted or not, whose nearest source was each.
    """

    metrics: Metrics
    shifted: float
    nearest: dict[str, float] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"shifted": self.shifted, "nearest": self.nearest, **self.metrics.plain()}


@dataclass(frozen=True)
class Evaluation:
    """rows: by name. images, seconds: tested, and spent on it."""

    rows: dict[str, RowResult]
    images: int
    seconds: float

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "rows": {name: row.plain() for name, row in self.rows.items()},
            "images": self.images,
            "seconds": self.seconds,
        }


def evaluate(
    model: nn.Module,
    batches: Iterable[Batch],
    sources: Mapping[str, SourceStyles],
    rows: Sequence[ShiftRow],
    *,
    precision: Precision = "float32",
    seed: int = 0,
    max_samples: int = MAX_SAMPLES,
) -> Evaluation:
    """Test `model` in every row's way. The model comes back as it was, its mode too.

    sources: for each layer that a row shifts at.
    seed: of the training samples that `sampled` looks among.
    max_samples: how many samples, plain and shifted together, one forward may hold; batches are cut down to that.
    """
    began = time.monotonic()
    with in_eval_mode(model), torch.inference_mode(), autocast(precision), _forked(model, sources, rows, seed) as forks:
        size = max(max_samples // (1 + sum(len(fork.renderings) for fork in forks.values())), 1)
        parts = [_tested(model, part, rows, forks) for batch in batches for part in _parts(batch, size)]
    if not parts:
        raise ValueError("nothing to test on: no batch came")
    results = {row.name: _row_result(row, place, parts, sources) for place, row in enumerate(rows)}
    return Evaluation(results, sum(len(part.classes) for part in parts), time.monotonic() - began)


def accuracy_of(model: nn.Module, batches: Iterable[Batch], precision: Precision) -> float:
    """Share of images whose class `model` tells."""
    row = ShiftRow("none", at=None)
    return evaluate(model, batches, {}, [row], precision=precision).rows["none"].metrics.accuracy


def autocast(precision: Precision) -> torch.autocast:
    """What a forward in this precision runs under."""
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")


@contextmanager
def in_eval_mode(model: nn.Module) -> Iterator[None]:
    """Every module in eval mode; each one's own mode is put back at the end."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


class _Answers(NamedTuple):
    """What one row says of one batch."""

    predictions: Predictions
    shifted: Bool[Tensor, "B"]
    nearest: Integer[Tensor, "B"] | None


class _Part(NamedTuple):
    """What all rows say of one batch, in the rows' order."""

    answers: list[_Answers]
    classes: Tensor
    domains: Tensor
    n_classes: int


class _Block(NamedTuple):
    """Where one rendering's samples stand in the grown batch: `samples[i]` at `first + i`."""

    first: int
    samples: Integer[Tensor, "M"]


class _Fork(Hook):
    """Adds the shifted maps of one layer to the batch that passes.

    rows: those that shift here. After a forward: `far` and `blocks` say what was shifted, and where in the batch it is.
    """

    def __init__(self, adapter: Adapter, sources: SourceStyles, rows: Sequence[ShiftRow], seed: int) -> None:
        self.adapter, self.rows = adapter, rows
        self.centres = sources.style.phi
        # what each rendering shifts to besides the centres
        self.renderings = {
            row.variant: sources.sampled_styles(row.variant.samples, seed) if row.variant.to == "sampled" else None
            for row in rows
        }
        self.begin(0)

    def begin(self, plain: int) -> None:
        """A forward of `plain` images is about to begin."""
        self.plain = plain
        self.far: dict[str, Tensor] = {}
        self.blocks: dict[Variant, _Block] = {}
        self.nearest: Tensor | None = None

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> Tensor:
        self._expect_once_and_open(output)
        assert isinstance(output, Tensor)
        features = self.adapter.features(output[: self.plain])
        own = style_of(features)
        centres = self.centres.to(own.mean)
        distances = gaps(own.phi, centres)
        self.nearest = distances.argmin(dim=1)
        self.far = {row.name: _is_shifted(row, distances, centres) for row in self.rows}
        grown = [output]
        for variant, among in self.renderings.items():
            samples = self._needed(variant)
            self.blocks[variant] = _Block(sum(map(len, grown)), samples)
            some = own.rows(samples)
            target = target_style(variant, some, distances[samples], centres, among)
            shifted = restyle(features[samples], some, target)
            added = self.adapter.put_back(output[samples], shifted)
            assert isinstance(added, Tensor)
            grown.append(added)
        return torch.cat(grown)

    def _needed(self, variant: Variant) -> Tensor:
        masks = [self.far[row.name] for row in self.rows if row.variant == variant]
        return torch.stack(masks).any(dim=0).nonzero()[:, 0]

    def _expect_once_and_open(self, output: object) -> None:
        if not isinstance(output, Tensor):
            raise TypeError(
                f"testing all shifts in one forward needs a layer that gives one tensor; {self.adapter.name!r} gives "
                f"a {type(output).__name__}. Shift at another layer, or one shift at a time with `styleshift.fit`"
            )
        if self.nearest is not None:
            raise ValueError(f"{self.adapter.name!r} runs more than once in a forward; shift at a layer that runs once")


def _is_shifted(row: ShiftRow, distances: Distances, centres: Centres) -> Bool[Tensor, "B"]:
    if row.variant.everything:
        return torch.ones(len(distances), dtype=torch.bool, device=distances.device)
    return are_far(distances, centres, row.alpha)


@contextmanager
def _forked(
    model: nn.Module, sources: Mapping[str, SourceStyles], rows: Sequence[ShiftRow], seed: int
) -> Iterator[dict[str, _Fork]]:
    """`model` with a fork at every layer that a row shifts at, until the end of the block."""
    layers = list(dict.fromkeys(row.at for row in rows if row.at is not None))
    if missing := [layer for layer in layers if layer not in sources]:
        raise KeyError(f"a row shifts at {', '.join(missing)}, but there are source styles for {list(sources)} only")
    forks = {
        layer: _Fork(adapter_of(model, layer), sources[layer], [row for row in rows if row.at == layer], seed)
        for layer in layers
    }
    handles = []
    try:
        for layer, fork in forks.items():
            handles.append(model.get_submodule(layer).register_forward_hook(fork))
        yield forks
    finally:
        for handle in handles:
            handle.remove()


def _tested(model: nn.Module, batch: Batch, rows: Sequence[ShiftRow], forks: Mapping[str, _Fork]) -> _Part:
    for fork in forks.values():
        fork.begin(len(batch.images))
    logits = model(batch.images)
    answers = [_answers(row, logits, len(batch.images), forks) for row in rows]
    return _Part(answers, batch.classes, batch.domains, logits.shape[1])


def _answers(row: ShiftRow, logits: Tensor, plain: int, forks: Mapping[str, _Fork]) -> _Answers:
    own = logits[:plain]
    if row.at is None:
        return _Answers(predictions_of(own), torch.zeros(plain, dtype=torch.bool), None)
    fork = forks[row.at]
    block, far = fork.blocks[row.variant], fork.far[row.name]
    # rendered for another row's smaller alpha, and near by this row's: the plain prediction holds
    wanted = far[block.samples]
    own = own.index_put((block.samples[wanted],), logits[block.first : block.first + len(block.samples)][wanted])
    return _Answers(predictions_of(own), far, fork.nearest)


def _row_result(row: ShiftRow, place: int, parts: Sequence[_Part], sources: Mapping[str, SourceStyles]) -> RowResult:
    answers = [part.answers[place] for part in parts]
    classes, domains = torch.cat([part.classes for part in parts]), torch.cat([part.domains for part in parts])
    predictions = Predictions(
        torch.cat([answer.predictions.classes for answer in answers]),
        torch.cat([answer.predictions.confidence for answer in answers]),
    )
    nearest = torch.cat([answer.nearest for answer in answers if answer.nearest is not None] or [torch.empty(0)])
    names = () if row.at is None else sources[row.at].domains
    return RowResult(
        metrics=metrics_of(predictions, classes, domains, parts[0].n_classes),
        shifted=float(torch.cat([answer.shifted for answer in answers]).double().mean()),
        nearest={str(name): float((nearest == source).double().mean()) for source, name in enumerate(names)},
    )


def _parts(batch: Batch, size: int) -> Iterator[Batch]:
    for first in range(0, len(batch.images), size):
        yield Batch(*(values[first : first + size] for values in batch))
