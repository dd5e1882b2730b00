"""Gates compared on stored models of PACS: who is shifted, and what that does to the target and to held-out sources.

python -m benchmarks.gate results/test-time/gate.json --models runs/models --work runs/gate

Thresholds come from a tenth of the training images, which make no centre; the official crossval images of the sources,
which no model was trained on, are what is called source here. Models that are in --work already are not run again.
"""

import argparse
import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.gate_outputs import POINTS, Outputs, outputs
from styleshift.calibrating import threshold
from styleshift.style.whitening import logged
from styleshift.training.trained import FILE

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Familiar:
    """The sources at one point: mean and variance of Phi in each domain, and where their images scatter alike."""

    centres: Numbers
    variances: Numbers
    white_matrix: Numbers
    white_centres: Numbers


Score = Callable[[Numbers, Familiar], Numbers]
DRAWS = 2000


def _gaps(phi: Numbers, sources: Familiar) -> Numbers:
    """Phi's distance to every centre, `[B, N]`."""
    gaps: Numbers = np.linalg.norm(phi[:, None] - sources.centres, axis=2)
    return gaps


def paper(phi: Numbers, sources: Familiar) -> Numbers:
    """Eq. 7: mean gap in spreads of the centres."""
    centres = sources.centres
    spread = np.linalg.norm(centres - centres.mean(axis=0), axis=1).mean()
    mean: Numbers = _gaps(phi, sources).mean(axis=1) / spread
    return mean


def nearest(phi: Numbers, sources: Familiar) -> Numbers:
    """The gap to the nearest centre alone."""
    gaps: Numbers = _gaps(phi, sources).min(axis=1)
    return gaps


def _white(phi: Numbers, sources: Familiar) -> tuple[Numbers, Familiar]:
    styles = logged(torch.from_numpy(phi)).numpy() @ sources.white_matrix
    return styles, replace(sources, centres=sources.white_centres)


def whitened(phi: Numbers, sources: Familiar) -> Numbers:
    """Eq. 7 in whitened coordinates: what alpha="auto" takes."""
    return paper(*_white(phi, sources))


def whitened_nearest(phi: Numbers, sources: Familiar) -> Numbers:
    """There, the gap to the nearest centre alone."""
    return nearest(*_white(phi, sources))


def own_radius(phi: Numbers, sources: Familiar) -> Numbers:
    """The mean of gaps, each in radii of its domain (root of the summed variances)."""
    mean: Numbers = (_gaps(phi, sources) / np.sqrt(sources.variances.sum(axis=1))).mean(axis=1)
    return mean


def standardised(phi: Numbers, sources: Familiar) -> Numbers:
    """Every entry in deviations of the domain; the nearest domain."""
    squares = np.square(phi[:, None] - sources.centres) / (sources.variances + 1e-8)
    least: Numbers = np.sqrt(squares.mean(axis=2)).min(axis=1)
    return least


def likelihood(phi: Numbers, sources: Familiar) -> Numbers:
    """Minus the log of a normal density with each domain's own variances; the likeliest domain."""
    squares = np.square(phi[:, None] - sources.centres) / (sources.variances + 1e-8) + np.log(sources.variances + 1e-8)
    least: Numbers = squares.mean(axis=2).min(axis=1)
    return least


_NAMES = [field.name for field in fields(Familiar)]
SCORES: tuple[Score, ...] = (paper, nearest, own_radius, standardised, likelihood, whitened, whitened_nearest)


@dataclass(frozen=True)
class Rule:
    """One row: who is shifted, and how.

    way: one of `gate_outputs.WAYS`, or "chosen". gates: points that decide; where there are more, a sample is far if it
    is so at any; CHOSEN is what at="auto" chose. alpha: None for what false_shift gives.
    """

    name: str
    way: str
    gates: tuple[str, ...] = ()
    score: Score = whitened
    alpha: float | None = None
    false_shift: float = 0.05


CHOSEN = "chosen"
ROW = "maxpool, layer1, layer2 x 0.7"


def _rules() -> Iterator[Rule]:
    stem, one, two, _ = ((point,) for point in POINTS)
    yield Rule("plain", "plain")
    yield Rule("alpha 3", "layer2", two, paper, alpha=3.0)
    yield Rule("all", "layer2", two, paper, alpha=0.0)
    yield Rule("auto, at=auto", CHOSEN, (CHOSEN,))
    for way in ("layer1", "layer2", "layer2 x 0.6", "layer1, layer2 x 0.7", "maxpool, layer1, layer2 x 0.5", ROW):
        yield Rule(f"auto, gate at maxpool, {way}", way, stem)
    yield Rule("auto, gate at layer1, layer2", "layer2", one)
    yield Rule("auto, gate at layer2, layer2", "layer2", two)
    yield Rule("auto, gate at maxpool or layer1, layer2", "layer2", stem + one)
    for share in (0.01, 0.02, 0.1, 0.2):
        yield Rule(f"auto, at=auto, false_shift={share}", CHOSEN, (CHOSEN,), false_shift=share)
    for score in SCORES:
        for gate in (stem, one, two):
            yield Rule(f"score {score.__name__}, gate at {gate[0]}, {ROW}", ROW, gate, score)


@dataclass(frozen=True)
class Model:
    """What one stored model says: `right[part][rule]` and `far[part][rule]`, a truth value an image."""

    name: str
    target: str
    seed: int
    method: str
    chosen: str
    tried: Sequence[Mapping[str, Any]]
    right: dict[str, dict[str, NDArray[np.bool_]]] = field(default_factory=dict)
    far: dict[str, dict[str, NDArray[np.bool_]]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, found: Outputs) -> "Model":
        """From the arrays of `outputs`."""
        target, seed, method = map(str, found["about"])
        tried = [ast.literal_eval(str(each)) for each in found["tried"]]
        model = cls(name, target, int(seed), method, str(found["chosen"][0]), tried)
        for part in ("source", "target"):
            model.right[part], model.far[part] = {}, {}
            for rule in _rules():
                far, said = _applied(rule, found, part, model.chosen)
                model.far[part][rule.name], model.right[part][rule.name] = far, said == found[f"{part} classes"]
        return model


def _applied(rule: Rule, found: Outputs, part: str, chosen: str) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    plain = found[f"{part} plain"]
    gates = [chosen if gate == CHOSEN else gate for gate in rule.gates]
    if not gates:
        return np.zeros(len(plain), dtype=bool), plain
    scores = _scores(rule, found, f"{part} phi", gates)
    alpha = rule.alpha
    if alpha is None:
        alpha = threshold(torch.from_numpy(_scores(rule, found, "held phi", gates)), rule.false_shift)
    far = scores > alpha
    return far, np.where(far, found[f"{part} {rule.way}"], plain)


def _scores(rule: Rule, found: Outputs, key: str, gates: Sequence[str]) -> Numbers:
    columns = [_score(rule.score, found, key, gate) for gate in gates]
    if len(gates) == 1:
        return columns[0]
    # in units of each gate's own threshold, so that they can be compared
    units = [_score(rule.score, found, "held phi", gate) for gate in gates]
    shares = [
        column / threshold(torch.from_numpy(unit), rule.false_shift)
        for column, unit in zip(columns, units, strict=True)
    ]
    largest: Numbers = np.max(shares, axis=0)
    return largest


def _score(score: Score, found: Outputs, key: str, gate: str) -> Numbers:
    phi = found[f"{key} {gate}"].astype(np.float64)
    return score(phi, Familiar(*(found[f"{name.replace('white_', 'white ')} {gate}"] for name in _NAMES)))


def summary(models: Sequence[Model]) -> list[dict[str, Any]]:
    """One line a rule: percent right and shifted for each target and on the sources, and its lead over alpha 3."""
    return [_line(rule.name, models) for rule in _rules()]


def _line(rule: str, models: Sequence[Model]) -> dict[str, Any]:
    targets = sorted({model.target for model in models})
    accuracy = {target: _mean(models, "target", "right", rule, target) for target in targets}
    plain = {target: _mean(models, "target", "right", "plain", target) for target in targets}
    return {
        "rule": rule,
        "accuracy": {**_rounded(accuracy), "average": round(float(np.mean(list(accuracy.values()))), 2)},
        "shifted": _rounded({target: _mean(models, "target", "far", rule, target) for target in targets}),
        "source_accuracy": _rounded({target: _mean(models, "source", "right", rule, target) for target in targets}),
        "source_shifted": _rounded({target: _mean(models, "source", "far", rule, target) for target in targets}),
        "least_over_plain": round(min(accuracy[target] - plain[target] for target in targets), 2),
        "over_alpha_3": interval(models, rule, "alpha 3"),
        "over_plain": interval(models, rule, "plain"),
    }


def _mean(models: Sequence[Model], part: str, what: str, rule: str, target: str) -> float:
    """Percent, the mean over this target's models."""
    each = [getattr(model, what)[part][rule].mean() for model in models if model.target == target]
    return 100 * float(np.mean(each))


def _rounded(percent: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in percent.items()}


def interval(models: Sequence[Model], rule: str, other: str, draws: int = DRAWS) -> dict[str, float]:
    """By how many points `rule` is right more often on the targets than `other`, with a paired 95 % bootstrap interval.

    The mean over targets of the mean over models. Each draw takes anew, for each target, its models and its images; an
    image goes with all models and both rules.
    """
    generator = np.random.default_rng(0)
    leads = []
    for target in sorted({model.target for model in models}):
        lead = np.stack([_lead(model, rule, other) for model in models if model.target == target])
        rows = generator.integers(len(lead), size=(draws, len(lead)))
        images = generator.integers(lead.shape[1], size=(draws, lead.shape[1]))
        leads.append(
            [100 * float(lead[row].mean(axis=0)[image].mean()) for row, image in zip(rows, images, strict=True)]
        )
    drawn = np.mean(leads, axis=0)
    targets = {model.target for model in models}
    points = [_mean(models, "target", "right", rule, t) - _mean(models, "target", "right", other, t) for t in targets]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return {"points": round(float(np.mean(points)), 2), "low": round(float(low), 2), "high": round(float(high), 2)}


def _lead(model: Model, rule: str, other: str) -> Numbers:
    right = model.right["target"]
    return right[rule].astype(np.float64) - right[other]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    torch.set_num_threads(1)
    folders = [folder for folder in sorted(options.models.iterdir()) if (folder / FILE).is_file()]
    wanted = [folder for folder in folders if re.search(options.only, folder.name)]
    models = []
    for folder in wanted:
        print(folder.name, flush=True)
        models.append(Model.of(folder.name, outputs(folder, options.work, options.thin, options.data)))
    if not models:
        raise SystemExit(f"no finished model in {options.models}")
    lines = summary(models)
    asked = f"--models MODELS --work WORK --only '{options.only}' --thin {options.thin}"
    command = f"python -m benchmarks.gate {options.out} {asked}"
    found = {"command": command, "thin": options.thin, "models": [_about(model) for model in models], "rules": lines}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if options.page is not None:
        options.page.write_text(written_into(options.page.read_text(encoding="utf-8"), found), encoding="utf-8")


def table(found: Mapping[str, Any]) -> str:
    """The lines of a result as Markdown: percent right on each target; shares shifted are in brackets."""
    targets = sorted({model["target"] for model in found["models"]})
    heads = ["rule", *targets, "average", "over alpha 3", "least over plain", "sources"]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *(_cells(line, targets) for line in found["rules"])]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(line: Mapping[str, Any], targets: Sequence[str]) -> list[str]:
    lead = line["over_alpha_3"]
    accuracy, shifted = (float(np.mean(list(line[key].values()))) for key in ("source_accuracy", "source_shifted"))
    return [
        line["rule"],
        *(f"{line['accuracy'][target]:.1f} ({line['shifted'][target]:.0f})" for target in targets),
        f"{line['accuracy']['average']:.2f}",
        f"{lead['points']:+.2f} [{lead['low']:+.2f}, {lead['high']:+.2f}]",
        f"{line['least_over_plain']:+.2f}",
        f"{accuracy:.1f} ({shifted:.1f})",
    ]


def choices(found: Mapping[str, Any]) -> str:
    """What at="auto" took for each model; then what every way recovered on strange looks, the mean over models."""
    lines = [["model", "decides", "shifts", "recovered"], ["---", "---", "---", "---:"]]
    for model in found["models"]:
        name = f"{model['target']}, {model['method']}, seed {model['seed']}"
        lines.append([name, *_way(model["tried"][0]), f"{100 * model['tried'][0]['recovered']:+.1f}"])
    recovered: dict[tuple[str, str], list[float]] = {}
    for tried in (tried for model in found["models"] for tried in model["tried"]):
        recovered.setdefault(_way(tried), []).append(100 * tried["recovered"])
    best = sorted(recovered, key=lambda way: -float(np.mean(recovered[way])))
    lines += [["all models", *way, f"{np.mean(recovered[way]):+.1f}"] for way in best]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _way(tried: Mapping[str, Any]) -> tuple[str, str]:
    return tried["gate_at"], f"{', '.join(tried['at'])} x {tried['fraction']:g}"


def written_into(page: str, found: Mapping[str, Any]) -> str:
    """`page` with both tables between its marks."""
    for name, text in (("table", table(found)), ("choices", choices(found))):
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if begin not in page or end not in page:
            raise ValueError(f"the page has no place for the {name}: it needs the lines {begin} and {end}")
        before, rest = page.split(begin, 1)
        page = f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"
    return page


def _about(model: Model) -> dict[str, Any]:
    about = {"name": model.name, "target": model.target, "seed": model.seed, "method": model.method}
    images = {part: len(model.right[part]["plain"]) for part in ("source", "target")}
    return {**about, "images": images, "tried": model.tried}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--models", type=Path, required=True, help="folder of model folders, as a store has them")
    parser.add_argument("--work", type=Path, required=True, help="folder for what models say; kept between calls")
    parser.add_argument("--thin", type=int, default=1, help="take every so many of the training and target images")
    parser.add_argument("--page", type=Path, help="also write the tables between the marks of this page")
    parser.add_argument("--data", type=Path, help="data root")
    parser.add_argument(
        "--only", default="pacs_original_resnet18_", help="models whose names have this pattern in them"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
