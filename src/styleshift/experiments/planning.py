"""A recipe's runs: for every row, column and seed the training that fills it, each training once.

Rows that differ only in what is done at test time share a run, and so do recipes: `pacs-alpha` needs no training that
`pacs-original` has not done.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from styleshift.data.imbalance import scenario
from styleshift.data.protocols import SPLITS
from styleshift.experiments.keys import PROTOCOL_VERSION, cell_of, key_of, protocol_of
from styleshift.experiments.methods import training_of
from styleshift.experiments.recipe import Column, Recipe, Row
from styleshift.experiments.record import Record
from styleshift.experiments.scales import Scale
from styleshift.style.shifting import Variant
from styleshift.training.adapted_rows import AdaptedRow, row_of
from styleshift.training.settings import Settings
from styleshift.training.variants import ShiftRow, shift_row
from styleshift.writing import path_part

ALPHA = 3.0  # of a shift that names none in a record, whatever its recipe takes
LAYERS = ("layer1", "layer2", "layer3", "layer4")  # the residual blocks, which the paper compares


@dataclass(frozen=True)
class Run:
    """A training and its tests, but for the data and the weights it starts from.

    domain: what the column names: the target, or the source of a single-source protocol.
    settings: `settings.weights` is None until the file is known.
    """

    recipe: str
    scale: Scale
    dataset: str
    protocol: str
    split: str
    scenario: str
    domain: str
    method: str
    settings: Settings
    shift_at: str

    @property
    def seed(self) -> int:
        """Of everything drawn: images taken away, first weights of the head, batches, styles."""
        return self.settings.seed

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain JSON values."""
        training = self.settings.plain()
        # the weights enter the key by themselves; threads change last bits, not a protocol
        del training["weights"], training["threads"]
        # a setting younger than some records: left out where it does nothing, so that these keep their keys
        if training["clip"] is None:
            del training["clip"]
        return {
            "version": PROTOCOL_VERSION,
            "dataset": self.dataset,
            "generated": self.scale.generated.model_dump() if self.scale.generated else None,
            "pretrained": self.scale.pretrained,
            "protocol": self.protocol,
            "split": self.split,
            "scenario": self.scenario,
            "domain": self.domain,
            "training": training,
        }

    @cached_property
    def cell(self) -> str:
        """Where its result belongs, on any machine."""
        return cell_of(self.facts)

    @property
    def comparable(self) -> str:
        """Equal for runs that may stand in one table."""
        return protocol_of(self.facts)

    def key(self, data: str, weights: str | None) -> str:
        """Of this run on these images and from these weights (both sha256)."""
        return key_of(self.facts, data, weights)

    def folder_name(self, key: str) -> str:
        """A name that a reader can tell apart and that no other run has."""
        parts = (
            self.dataset,
            self.scenario,
            self.settings.backbone,
            self.method,
            self.domain,
            f"seed{self.seed}",
            self.scale.name,
        )
        # a dataset may be a path, a domain any folder's name
        return path_part("_".join((*parts, key[:12])))

    def starting_from(self, weights: str | None) -> "Run":
        """This run once the sha256 of the file it starts from is known."""
        return replace(self, settings=replace(self.settings, weights=weights))

    def __str__(self) -> str:
        role = "source" if self.protocol == "single-source" else "target"
        scenario = "" if self.scenario == "original" else f" ({self.scenario})"
        return f"{self.method}, {role} {self.domain}{scenario}, seed {self.seed}"


def runs_of(recipe: Recipe, scale: Scale, seeds: Sequence[int] = (), only: Iterable[str] = ()) -> list[Run]:
    """The trainings that `recipe` needs, each once, a complete seed first.

    seeds: none given means the scale's. only: `NAME=VALUE`, with the names target (or source), method, scenario; of
    several with one name any may hold, of different names all must. The methods sb and tsb are all that balance.
    ValueError or KeyError for a recipe with a method, shift, layer, split or scenario that does not exist, for a
    condition that holds for no run, and for conditions that hold for none together.
    """
    _expect_known(recipe)
    wanted = _wanted(only)
    runs = [
        run_of(recipe, scale, row, column, seed)
        for seed in seeds or scale.seeds
        for column in recipe.columns
        for row in recipe.rows
        if row.not_run is None
    ]
    alone = [{name: [value]} for name, values in wanted.items() for value in values]
    for conditions in (*alone, wanted):
        if not any(_is_wanted(run, conditions) for run in runs):
            asked = " and ".join(map(_said, conditions.items()))
            raise ValueError(f"{recipe.name} has no run with {asked}; {_there_is(runs)}")
    return list({run.cell: run for run in runs if _is_wanted(run, wanted)}.values())


def _expect_known(recipe: Recipe) -> None:
    """Whatever can be wrong in a recipe and does not depend on the images, before any are decoded."""
    shifts_of(recipe, LAYERS)
    if recipe.shift_at not in LAYERS:
        raise ValueError(f"{recipe.name} shifts at {recipe.shift_at}; a run is tested at {', '.join(LAYERS)}")
    if recipe.split not in SPLITS:
        near = difflib.get_close_matches(recipe.split, SPLITS) or SPLITS
        raise ValueError(f"{recipe.name} has no split {recipe.split!r}; did you mean {' or '.join(near)}?")
    for name in dict.fromkeys(column.scenario or recipe.scenario for column in recipe.columns):
        scenario(name)


def run_of(recipe: Recipe, scale: Scale, row: Row, column: Column, seed: int) -> Run:
    """The training behind one cell and seed."""
    method = training_of(row.method)
    settings = Settings.of(
        {
            "backbone": scale.backbone or recipe.backbone,
            **scale.training,
            **method,
            "points": recipe.points.get(row.method.split("+")[0]) if method["augment"] or method["balance"] else None,
            # without balancing, pseudo-domains change nothing in a training, and it is the one with domain labels
            "pseudo_domains": recipe.clusters if method["balance"] else None,
            "shift_at": recipe.shift_at if recipe.clusters and method["balance"] else None,
            "seed": seed,
        }
    )
    return Run(
        recipe=recipe.name,
        scale=scale,
        dataset=recipe.dataset,
        protocol=recipe.protocol,
        split=recipe.split,
        scenario=column.scenario or recipe.scenario,
        domain=column.domain,
        method=row.method,
        settings=settings,
        shift_at=recipe.shift_at,
    )


def shift_of(recipe: Recipe, row: Row) -> "Shift":
    """The row's shift, where nothing is left to a recipe."""
    found = row_of(row.shift, recipe.shift_at, recipe.alpha)
    if isinstance(found, AdaptedRow):
        return Shift(ShiftRow(found.name, found.layer), recipe.clusters, found, recipe.timed)
    return Shift(found, recipe.clusters, timed=recipe.timed)


def shifts_of(recipe: Recipe, layers: Sequence[str]) -> tuple["Shift", ...]:
    """What a run of `recipe` is tested with: what its rows ask for, and all that other recipes may ask of it.

    layers: of the network that shifts can sit at.
    """
    at = recipe.shift_at
    alphas = [Shift(ShiftRow("", layer, float(alpha))) for layer in layers for alpha in range(6)]
    variants = [Shift(shift_row(f"ts:{variant}", at)) for variant in ("all", "sampled", "soft", "partial=0.8")]
    clustered = [Shift(ShiftRow("", at, alpha), clusters=3) for alpha in (2.0, ALPHA)]
    asked = [shift_of(recipe, row) for row in recipe.rows if row.not_run is None]
    if nowhere := sorted({str(shift.row.at) for shift in asked if shift.row.at not in (None, *layers)}):
        raise ValueError(f"{recipe.name} shifts at {', '.join(nowhere)}; a run is tested at {', '.join(layers)}")
    known = [
        shift
        for shift in (*alphas, *variants, *clustered, *asked)
        if shift.row.at in layers or (shift.adapted and shift.row.at is None)
    ]
    return tuple({shift.name: shift for shift in (UNSHIFTED, *known)}.values())


def is_whole(record: Record, recipe: Recipe) -> bool:
    """Whether it was tested in every way that `recipe` shows; if not, its model is tested once more."""
    asked = {shift_of(recipe, row) for row in recipe.rows if row.not_run is None}
    return all(_has(record, shift) or not _fits(shift.row.at, record) for shift in asked)


def _has(record: Record, shift: "Shift") -> bool:
    return record.accuracy_of(shift.name) is not None and (not shift.timed or shift.name in record.costs)


def _fits(layer: str | None, record: Record) -> bool:
    """Whether the record's network has the layer: the smoke scale's has one block less than a ResNet."""
    return layer is None or any(f"at={layer}" in shift for shift in record.shifts)


@dataclass(frozen=True)
class Shift:
    """One way to be tested.

    row: the layer whose source styles are needed, and what is done with them if nothing is adapted.
    clusters: shift to that many k-means clusters of the sources' styles; None: to the domains.
    adapted: a test-time method that does it, alone or around a shift. timed: its inference time is measured, too.
    """

    row: ShiftRow
    clusters: int | None = None
    adapted: AdaptedRow | None = None
    timed: bool = False

    @property
    def name(self) -> str:
        """`none`, a method's complete name, or `ts:at=LAYER` with what differs from alpha 3, nearest centre, labels."""
        if self.adapted is not None:
            clusters = f" (clusters={self.clusters})" if self.clusters and self.row.at else ""
            return f"{self.adapted.name}{clusters}"
        if self.row.at is None:
            return "none"
        settings = [f"at={self.row.at}", *_variant_words(self.row.variant)]
        if self.row.alpha != ALPHA and not self.row.variant.everything:
            settings.append(f"alpha={self.row.alpha:g}")
        return "ts:" + ",".join([*settings, *([f"clusters={self.clusters}"] if self.clusters else [])])


UNSHIFTED = Shift(ShiftRow("none", at=None))


def _variant_words(variant: Variant) -> list[str]:
    words = ["all"] if variant.everything else []
    if variant.to != "nearest":
        number = {"sampled": variant.samples, "soft": variant.temperature}[variant.to]
        words.append(f"{variant.to}={number:g}")
    return [*words, f"partial={variant.fraction:g}"] if variant.fraction != 1 else words


def _wanted(only: Iterable[str]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for condition in only:
        name, equals, value = condition.partition("=")
        if not equals or name not in _SELECTABLE:
            near = difflib.get_close_matches(name, _SELECTABLE) or _SELECTABLE
            raise ValueError(f"--only takes {'=…, '.join(near)}=…; got {condition!r}")
        wanted.setdefault(name, []).append(value)
    return wanted


_SELECTABLE = ("target", "source", "method", "scenario")
_BALANCED = ("sb", "tsb")  # the paper's words; with its test-time shift, TSB, it is the same training


def _is_wanted(run: Run, wanted: Mapping[str, Sequence[str]]) -> bool:
    return all(any(_matches(run, name, value) for value in values) for name, values in wanted.items())


def _matches(run: Run, name: str, value: str) -> bool:
    if name in ("target", "source"):
        # the beginning of a domain will do, as everywhere: `art` for `art_painting`
        return run.domain.lower().startswith(value.lower())
    found: str = getattr(run, name)
    if name == "method" and value.lower() in _BALANCED:
        return run.settings.balance
    return found == value or (name == "scenario" and found.partition(":")[0] == value)


def _said(condition: tuple[str, Sequence[str]]) -> str:
    return f"{condition[0]}={' or '.join(condition[1])}"


def _there_is(runs: Sequence[Run]) -> str:
    domains = dict.fromkeys(run.domain for run in runs)
    methods = dict.fromkeys(run.method for run in runs)
    return f"there are {', '.join(domains)} and {', '.join(methods)}"
