"""Predictions before and after the shift, as figures: confusion and calibration; and the scores behind them."""

from collections.abc import Sequence

import torch

from styleshift.report.charts import Line, Panel, Point, Stack, histogram, line_chart, matrix
from styleshift.report.drawing import Axis, colour
from styleshift.report.figure import Figure, Key, Rows, View
from styleshift.report.looking import Answers, Look
from styleshift.training.metrics import Metrics, Predictions, metrics_of

MOST_CLASSES = 20  # of a matrix that can be read
_SCORE_BINS = 32
_BINS = 10  # of the diagram; the calibration error beside it is over 15, as in the tables

_Bin = tuple[float, float, int]  # mean confidence, accuracy, images
Sides = tuple[tuple[str, Metrics], tuple[str, Metrics]]


def sides_of(look: Look) -> Sides:
    """The metrics before and after the shift."""
    answers = look.answers
    before = _metrics(answers, answers.before, answers.before_confidence, len(look.class_names))
    after = _metrics(answers, answers.after, answers.after_confidence, len(look.class_names))
    return ("before", before), ("after", after)


def confusion(look: Look, name: str) -> Figure:
    """Which class is told as which, before the shift and after it."""
    sides = sides_of(look)
    shown = _most_mistaken(sides[0][1], MOST_CLASSES)
    names = [look.class_names[number] for number in shown]
    views = tuple(
        View(
            f"{side} the shift ({100 * metrics.accuracy:.1f} %)",
            matrix(_part(metrics.confusion, shown), names, f"Confusion {side} the shift over {len(names)} classes."),
        )
        for side, metrics in sides
    )
    left_out = len(look.class_names) - len(shown)
    only = f" Of {len(look.class_names)} classes the {len(shown)} with most mistakes are shown." if left_out else ""
    return Figure(
        name=name,
        title="Confusion before and after",
        caption=f"Rows are the truth, columns what was told, in images. The diagonal is right.{only}",
        views=views,
        keys=(),
        wide=True,
        columns=("truth", "told as", "before", "after"),
        rows=_confused(look, sides),
    )


def calibration(look: Look, name: str) -> Figure:
    """How often the model is right when it says how sure it is."""
    sides = sides_of(look)
    bins = {side: _binned(*hits) for (side, _), hits in zip(sides, _hits(look.answers), strict=True)}
    perfect = Line("perfect", [Point(0, 0, "", size=0), Point(100, 100, "", size=0)], "ink", dashed=True)
    lines = [_calibration_line(side, found, len(look.answers.truth)) for side, found in bins.items()]
    errors = {side: 100 * metrics.calibration_error for side, metrics in sides}
    y = Axis(0, 100, tuple((float(value), str(value)) for value in range(0, 101, 20)))
    about = f"Share right against confidence in {_BINS} bins, before and after the shift."
    return Figure(
        name=name,
        title="Calibration",
        caption="Below the dashed line the model is surer than it is right. Larger marks hold more images. ECE: mean "
        "gap over 15 bins.",
        views=(View("", line_chart([Panel("right, %", [perfect, *lines], y, 300)], y, "confidence, %", about)),),
        keys=(
            Key("perfect", "perfectly calibrated", "ink", dashed=True),
            *(
                Key(each.series, f"{each.series} (ECE {errors[each.series]:.1f} %)", each.colour, each.shape)
                for each in lines
            ),
        ),
        columns=("side", "confidence", "accuracy", "images"),
        rows=tuple((side, *each) for side, found in bins.items() for each in found),
    )


def scores(look: Look, name: str) -> Figure | None:
    """How far the test images are, and nearest to which source; None where scores are beyond all numbers."""
    known = [(score, n) for score, n in zip(look.answers.score, look.answers.nearest, strict=True) if score is not None]
    if not known:
        return None
    axis = Axis.over([score for score, _ in known] + [look.alpha])
    width = (axis.high - axis.low) / _SCORE_BINS
    counts = [[0] * len(look.sources) for _ in range(_SCORE_BINS)]
    for score, nearest in known:
        counts[min(int((score - axis.low) / width), _SCORE_BINS - 1)][nearest] += 1
    edges = [axis.low + place * width for place in range(_SCORE_BINS + 1)]
    stacks = [
        Stack(low, high, [(source, colour(n), count[n]) for n, source in enumerate(look.sources) if count[n]])
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    limit = (look.alpha, f"alpha {look.alpha:g}")
    about = (
        f"Histogram of the scores of {len(known)} test images, coloured by nearest source, with alpha {look.alpha:g}."
    )
    return Figure(
        name=name,
        title="How far the test images are",
        caption="The score is the mean distance to the sources' mean styles, in spreads of these. Beyond the dashed "
        "line an image is shifted to its nearest source, which its colour says.",
        views=(View("", histogram(stacks, axis, "score, in spreads of the sources", limit, about)),),
        keys=tuple(Key(source, f"nearest: {source}", colour(n), "square") for n, source in enumerate(look.sources)),
        columns=("from", "to", "nearest", "images"),
        rows=tuple((each.low, each.high, source, count) for each in stacks for source, _, count in each.parts),
    )


def _calibration_line(side: str, bins: Sequence[_Bin], images: int) -> Line:
    points = [
        Point(
            100 * confidence,
            100 * accuracy,
            f"{side}: {100 * confidence:.0f} % sure, {100 * accuracy:.0f} % right, {count} images",
            size=2.5 + 6 * (count / images) ** 0.5,
        )
        for confidence, accuracy, count in bins
    ]
    return Line(side, points, *(("c0", "dot") if side == "after" else ("c1", "square")))


def _metrics(answers: Answers, said: Sequence[int], confidence: Sequence[float], n_classes: int) -> Metrics:
    truth = torch.tensor(answers.truth)
    predictions = Predictions(torch.tensor(said), torch.tensor(confidence))
    return metrics_of(predictions, truth, torch.zeros_like(truth), n_classes)


def _most_mistaken(metrics: Metrics, most: int) -> list[int]:
    wrong = [sum(row) - row[number] for number, row in enumerate(metrics.confusion)]
    return sorted(sorted(range(len(wrong)), key=lambda number: -wrong[number])[:most])


def _part(confusion: Sequence[Sequence[int]], shown: Sequence[int]) -> list[list[int]]:
    return [[confusion[truth][said] for said in shown] for truth in shown]


def _confused(look: Look, sides: Sides) -> Rows:
    before, after = (metrics.confusion for _, metrics in sides)
    return tuple(
        (truth, said, before[row][column], after[row][column])
        for row, truth in enumerate(look.class_names)
        for column, said in enumerate(look.class_names)
        if before[row][column] or after[row][column]
    )


_Hits = tuple[list[bool], list[float]]


def _hits(answers: Answers) -> tuple[_Hits, _Hits]:
    before, after = (
        [said == truth for said, truth in zip(side, answers.truth, strict=True)]
        for side in (answers.before, answers.after)
    )
    return (before, answers.before_confidence), (after, answers.after_confidence)


def _binned(hits: Sequence[bool], sure: Sequence[float]) -> list[_Bin]:
    """Of every bin that is not empty."""
    bins: list[list[int]] = [[] for _ in range(_BINS)]
    for index, confidence in enumerate(sure):
        bins[min(int(confidence * _BINS), _BINS - 1)].append(index)
    return [
        (sum(sure[i] for i in members) / len(members), sum(hits[i] for i in members) / len(members), len(members))
        for members in bins
        if members
    ]
