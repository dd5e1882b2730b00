"""Confusion, calibration and scores of a few images, by hand."""

import pytest

from styleshift.report import predictions
from styleshift.report.looking import Answers, Look
from styleshift.report.predictions import calibration, confusion, scores, sides_of
from styleshift.report.style_map import StyleMap

NOTHING = StyleMap([], [], {}, [])


def look(score: float | None = 4.0) -> Look:
    """Two cats, two dogs: one dog is mended by the shift, one cat broken."""
    answers = Answers(
        truth=[0, 0, 1, 1],
        before=[0, 0, 0, 1],
        before_confidence=[0.95, 0.95, 0.55, 1.0],
        after=[0, 1, 1, 1],
        after_confidence=[0.9, 0.6, 0.7, 0.8],
        score=[2.0, score, score, 2.5],
        far=[False, True, True, False],
        nearest=[0, 1, 1, 0],
    )
    return Look(["cat", "dog"], ["art", "photo"], 3.0, "layer2", answers, NOTHING, [])


def test_both_sides_have_their_accuracy() -> None:
    assert [(side, metrics.accuracy) for side, metrics in sides_of(look())] == [("before", 0.75), ("after", 0.75)]


def test_confusion_counts_images_before_and_after() -> None:
    figure = confusion(look(), "name")
    assert set(figure.rows) == {("cat", "cat", 2, 1), ("cat", "dog", 0, 1), ("dog", "cat", 1, 0), ("dog", "dog", 1, 2)}
    assert [view.name for view in figure.views] == ["before the shift (75.0 %)", "after the shift (75.0 %)"]


def test_of_many_classes_those_with_most_mistakes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "MOST_CLASSES", 1)
    figure = confusion(look(), "name")
    assert figure.caption.endswith("Of 2 classes the 1 with most mistakes are shown.")
    assert ">dog</text>" in figure.views[0].drawing
    assert ">cat</text>" not in figure.views[0].drawing


def test_calibration_is_confidence_beside_accuracy_in_bins() -> None:
    before = [row[1:] for row in calibration(look(), "name").rows if row[0] == "before"]
    # 0.55 is wrong; 0.95, 0.95 and a full 1 share the last bin and are right
    assert before == [(pytest.approx(0.55), 0.0, 1), (pytest.approx(2.9 / 3), 1.0, 3)]


def test_scores_are_counted_by_nearest_source() -> None:
    figure = scores(look(), "name")
    assert figure is not None
    counts = {name: sum(int(str(row[3])) for row in figure.rows if row[2] == name) for name in ("art", "photo")}
    assert counts == {"art": 2, "photo": 2}
    assert all(float(str(low)) <= float(str(high)) for low, high, *_ in figure.rows)


def test_scores_beyond_all_numbers_have_no_histogram() -> None:
    answers = look(None).answers
    alone = Answers(**{**vars(answers), "score": [None] * 4})
    assert scores(Look(["cat", "dog"], ["art"], 3.0, "layer2", alone, NOTHING, []), "name") is None
