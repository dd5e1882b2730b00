"""Methods side by side, and the verdict."""

from fractions import Fraction
from math import comb

import pytest
import torch
from torch import Tensor, nn

from styleshift.adaptation.wrapping import Sees
from styleshift.backbones.building import network
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles, sources_of
from styleshift.training.adapted_rows import row_of, wrapped
from styleshift.training.comparing import Tried, Verdict, compared, luck, verdicts
from styleshift.training.online import are_shifted
from styleshift.training.streams import Labelled, stream


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (5, 0), (9, 2), (2, 9), (30, 30)])
def test_luck_is_mcnemars_exact_test(wins: int, losses: int) -> None:
    tosses = wins + losses
    tail = sum(Fraction(comb(tosses, k), 2**tosses) for k in range(min(wins, losses) + 1))
    assert luck(wins, losses) == pytest.approx(float(min(Fraction(1), 2 * tail)))


def test_many_images_are_no_overflow() -> None:
    assert luck(6000, 4000) < 1e-80
    assert luck(5001, 4999) > 0.9


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict("sketch", 0.076, 1.0, 0.001), "TS helps on sketch: +7.6 points, 100 % shifted"),
        (Verdict("photo", 0.0, 0.0, 1.0), "no effect on photo: 0 % shifted"),
        (Verdict("art", -0.031, 0.42, 0.01), "TS hurts on art: -3.1 points, 42 % shifted"),
        (Verdict("art", 0.004, 0.42, 0.05), "no clear effect on art: +0.4 points, 42 % shifted"),
    ],
)
def test_a_verdict_is_in_plain_words(verdict: Verdict, words: str) -> None:
    assert verdict.words == words


def tried(hits: list[int], shifted: float) -> Tried:
    marks = torch.tensor(hits).bool()
    return Tried("it", Sees(), {"a": marks.float().mean().item()}, {"a": shifted}, {"a": marks})


def test_a_verdict_counts_images_won_and_lost() -> None:
    (found,) = verdicts(tried([0] * 8 + [1] * 2, 0.0), tried([1] * 8 + [0, 1], 0.9))
    assert found == Verdict("a", 0.7, 0.9, luck(8, 1))


@pytest.fixture(scope="module")
def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return network("smallnet", 3).eval()


@pytest.fixture(scope="module")
def styles(model: nn.Module) -> dict[str, SourceStyles]:
    drawn = torch.randn(9, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    return {"layer2": sources_of(model, [(drawn, [0, 1, 2] * 3)], "layer2")}


def labelled(model: nn.Module) -> Labelled:
    """Images of two domains; their classes are what the plain model says, but for every fifth."""
    pictures = torch.randn(40, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        classes = model(pictures).argmax(dim=1)
    classes[::5] = (classes[::5] + 1) % 3

    def images(numbers: Tensor) -> Tensor:
        return pictures[numbers]

    return Labelled(images, classes, torch.arange(40) // 20, ("a", "b"))


def test_every_domain_is_met_from_a_fresh_start(model: nn.Module, styles: dict[str, SourceStyles]) -> None:
    rows = {name: row_of(name, "layer2") for name in ("none", "ts:alpha=0", "tent:learning_rate=0.5")}
    found = compared(model, rows, styles, labelled(model), batch_size=8)
    assert [each.method for each in found] == list(rows)
    assert found[0].accuracy == {"a": 0.8, "b": 0.8}
    assert found[0].average == pytest.approx(0.8)
    assert found[1].shifted == {"a": 1.0, "b": 1.0}
    assert found[2].shifted == {"a": 0.0, "b": 0.0}
    everything = labelled(model)
    second = Labelled(lambda n: everything.images(n + 20), everything.classes[20:], everything.domains[20:], ("a", "b"))
    alone = compared(model, rows, styles, second, batch_size=8)
    assert [each.accuracy["b"] for each in alone] == [each.accuracy["b"] for each in found]


def test_a_method_that_cannot_answer_says_why_and_the_others_do(styles: dict[str, SourceStyles]) -> None:
    net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3), nn.Flatten()).eval()
    images = Labelled(lambda n: torch.randn(len(n), 3, 4, 4), torch.zeros(3).long(), torch.zeros(3).long(), ("a",))
    found = compared(net, {name: row_of(name, "1") for name in ("none", "tent")}, {}, images, batch_size=1)
    assert found[0].refused is None
    assert "more than one value a channel" in (found[1].refused or "")
    assert found[1].plain()["average"] is None


def test_what_is_shifted_is_told_batch_by_batch_before_each_answer(
    model: nn.Module, styles: dict[str, SourceStyles]
) -> None:
    everything = labelled(model)
    one = Labelled(everything.images, everything.classes[:20], everything.domains[:20], ("a",))
    body = wrapped(row_of("ts+tent", "layer2"), model, styles).body
    assert isinstance(body, ShiftedModel)
    scores = body.explain(one.images(torch.arange(20))).score
    row = row_of(f"ts:alpha={float(scores.median())}+tent:learning_rate=0.5,norms=batch", "layer2")
    (found,) = compared(model, {"it": row}, styles, one, batch_size=5)
    literal = wrapped(row, model, styles)
    batches = stream("iid", one.classes, one.domains, batch_size=5)
    shifted = 0
    for numbers in batches:
        shifted += int(are_shifted(literal, one.images(numbers)).sum())
        literal(one.images(numbers))
    assert found.shifted == {"a": shifted / 20}
    afterwards = sum(int(are_shifted(literal, one.images(numbers)).sum()) for numbers in batches)
    assert afterwards != shifted
