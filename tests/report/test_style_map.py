"""The style map: two dimensions, and arrows to the nearest source's mean."""

import math
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from styleshift.report import style_map
from styleshift.report.style_map import MOST_OF_A_SOURCE, MOST_TESTED, Spotted, drawn, mapped, which_tested
from styleshift.sources import SourceStyles


def styles(phi: Tensor, names: tuple[str, ...] = ("art", "photo")) -> SourceStyles:
    """Of images that take turns between the domains."""
    of = torch.arange(len(phi)) % len(names)
    mean = torch.stack([phi[of == number].double().mean(dim=0) for number in range(len(names))])
    counts = torch.bincount(of)
    return SourceStyles("layer2", names, counts, mean, torch.zeros_like(mean), phi, of, torch.arange(len(phi)))


def some(rows: int, width: int = 6, seed: int = 0) -> Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))


pytestmark = pytest.mark.usefixtures("without_tsne")

TESTED = [Spotted("a.png", 4.0, True, 0), Spotted("b.png", 2.0, False, 1), Spotted("c.png", None, True, 1)]


def test_spots_are_centres_then_source_images_then_test_images() -> None:
    found = mapped(styles(some(40)), some(3, seed=1), TESTED)
    assert found.source_of == [0] * 20 + [1] * 20
    assert {len(spots) for spots in found.layouts.values()} == {2 + 40 + 3}


def test_tsne_places_every_spot_where_scikit_learn_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(style_map, "has_tsne", lambda: True)
    found = mapped(styles(some(20)), some(3, seed=1), TESTED)
    assert list(found.layouts) == ["PCA", "t-SNE"]
    assert len(found.layouts["t-SNE"]) == 2 + 20 + 3


def test_pca_keeps_the_distances_of_points_in_a_plane() -> None:
    plane = torch.zeros(30, 6)
    plane[:, [1, 4]] = some(30, 2) * torch.tensor([5.0, 1.0])
    found = mapped(styles(plane), plane[:3], TESTED)
    spots = found.layouts["PCA"]
    for a, b in ((2, 3), (5, 20), (2, 32)):
        # rows stand domain by domain: those of even number first
        rows = [plane[[*range(0, 30, 2), *range(1, 30, 2), 0, 1, 2][place - 2]] for place in (a, b)]
        assert math.dist(spots[a], spots[b]) == pytest.approx(float((rows[0] - rows[1]).norm()), abs=1e-3)
    assert sum(found.explained) == pytest.approx(1)


def test_it_is_the_same_at_every_call() -> None:
    sources = styles(some(40))
    assert mapped(sources, some(3, seed=1), TESTED) == mapped(sources, some(3, seed=1), TESTED)


def test_one_image_of_one_source_is_a_map_too() -> None:
    found = mapped(styles(some(1), ("art",)), some(1), TESTED[:1])
    assert found.layouts["PCA"] == [(0.0, 0.0)] * 3
    assert "t-SNE" not in found.layouts
    assert "<svg" in drawn(found, "map", ["art"], "sketch", 3.0, "layer2").views[0].drawing


def test_without_scikit_learn_it_says_what_to_install() -> None:
    figure = drawn(mapped(styles(some(40)), some(3), TESTED), "map", ["art", "photo"], "sketch", 3.0, "layer2")
    assert [view.name for view in figure.views] == ["PCA"]
    assert figure.caption.endswith("t-SNE needs scikit-learn: pip install 'styleshift[report]'.")


def test_far_images_alone_have_arrows_and_they_lead_to_the_nearest_centre() -> None:
    found = mapped(styles(some(40)), some(3, seed=1) + 5, TESTED)
    drawing = ElementTree.fromstring(drawn(found, "map", ["art", "photo"], "sketch", 3.0, "layer2").views[0].drawing)
    arrows = [each for each in drawing.iter("line") if str(each.get("class")).startswith("arrow")]
    centres = [each for each in drawing.iter() if "centre c" in str(each.get("class"))]
    assert [each.get("class") for each in arrows] == ["arrow c0", "arrow c1"]
    dot, square = centres
    left, top = map(float, str(square.get("d")).removeprefix("M").partition("L")[0].split())
    middles = [(float(str(dot.get("cx"))), float(str(dot.get("cy")))), (left + 8.5, top + 8.5)]
    for arrow, middle in zip(arrows, middles, strict=True):
        end = (float(str(arrow.get("x2"))), float(str(arrow.get("y2"))))
        assert math.dist(end, middle) == pytest.approx(12, abs=0.2)


def test_its_data_has_a_row_for_every_spot() -> None:
    found = mapped(styles(some(40)), some(3), TESTED)
    figure = drawn(found, "map", ["art", "photo"], "sketch", 3.0, "layer2")
    assert len(figure.rows) == 2 + 40 + 3
    assert figure.rows[-1][-4:] == (None, True, "photo", "c.png")
    assert all(len(row) == len(figure.columns) for row in figure.rows)


def test_a_large_source_sends_some_of_its_images() -> None:
    found = mapped(styles(some(4 * MOST_OF_A_SOURCE, width=2)), some(3, width=2), TESTED)
    assert len(found.source_of) == 2 * MOST_OF_A_SOURCE


@given(st.integers(0, 2000))
def test_no_more_test_images_than_can_be_seen(count: int) -> None:
    assert len(which_tested(count)) == min(count, MOST_TESTED)
