"""The comparison of gates: what it counts, on outputs made up so that the answers are known."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.gate_outputs import POINTS, WAYS, Outputs, _batch

from benchmarks import gate
from styleshift.backbones.building import backbone
from styleshift.layers.style_shifting import StyleShifting
from styleshift.sources import sources_of
from styleshift.style.shifting import Variant, scores_of
from styleshift.style.whitening import Whitening, logged

ROOT = Path(__file__).parents[2]


def made_up(target: str, seed: int, far: float = 50.0) -> Outputs:
    """A plain model that is never right and a shift at layer2 that always is; two of three target images are far."""
    random = np.random.default_rng(seed)
    found: Outputs = {"about": np.array([target, str(seed), "mixstyle"]), "chosen": np.array(["layer1"])}
    tried = {"gate_at": "layer1", "at": ("layer2",), "fraction": 1.0, "recovered": 0.25}
    found["tried"] = np.array([repr(tried)])
    for part, count in (("source", 100), ("target", 30)):
        found[f"{part} classes"] = np.ones(count, dtype=np.int64)
        for way in (*WAYS, "chosen"):
            found[f"{part} {way}"] = np.full(count, int(way in ("layer2", "chosen")), dtype=np.int8)
    for block in POINTS:
        found[f"centres {block}"] = np.eye(3, 4) * 3
        found[f"variances {block}"] = np.ones((3, 4))
        found[f"white matrix {block}"] = np.eye(4)
        found[f"white centres {block}"] = logged(torch.eye(3, 4, dtype=torch.float64) * 3).numpy()
        found[f"held phi {block}"] = random.normal(size=(200, 4)).astype(np.float32)
        found[f"source phi {block}"] = found[f"held phi {block}"][:100]
        target_phi = random.normal(size=(30, 4)) * 0.1
        target_phi[10:] += far
        found[f"target phi {block}"] = target_phi.astype(np.float32)
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    models = [gate.Model.of("a", made_up("sketch", 0)), gate.Model.of("b", made_up("photo", 1, far=0.0))]
    return {"models": [gate._about(model) for model in models], "rules": gate.summary(models)}


def line(found: dict[str, Any], rule: str) -> dict[str, Any]:
    return next(line for line in found["rules"] if line["rule"] == rule)


def test_who_is_far_is_shifted_and_right(found: dict[str, Any]) -> None:
    auto = line(found, "auto, gate at layer1, layer2")
    assert auto["accuracy"] == {"sketch": 66.67, "photo": 0.0, "average": 33.33}
    assert auto["shifted"] == {"sketch": 66.67, "photo": 0.0}
    assert auto["over_plain"]["points"] == 33.33
    assert auto["least_over_plain"] == 0.0


def test_the_plain_model_and_all_are_the_two_ends(found: dict[str, Any]) -> None:
    assert line(found, "plain")["accuracy"]["average"] == 0.0
    assert line(found, "all")["accuracy"]["average"] == 100.0
    assert line(found, "all")["source_shifted"] == {"photo": 100.0, "sketch": 100.0}


def test_what_at_auto_chose_is_a_row(found: dict[str, Any]) -> None:
    assert line(found, "auto, at=auto")["accuracy"] == line(found, "auto, gate at layer1, layer2")["accuracy"]


@pytest.mark.parametrize(
    "name",
    [
        "auto, gate at layer2, layer2",
        "auto, gate at maxpool or layer1, layer2",
        f"score likelihood, gate at layer1, {gate.ROW}",
        f"score whitened_nearest, gate at layer1, {gate.ROW}",
    ],
)
def test_the_share_shifted_of_familiar_images_is_near_the_one_asked(found: dict[str, Any], name: str) -> None:
    for share in line(found, name)["source_shifted"].values():
        assert 1 <= share <= 10


def test_an_interval_holds_the_points_and_is_paired() -> None:
    models = [gate.Model.of(str(seed), made_up("sketch", seed)) for seed in range(3)]
    lead = gate.interval(models, "auto, gate at layer1, layer2", "plain", draws=200)
    assert lead["low"] < lead["points"] == 66.67 < lead["high"]
    assert gate.interval(models, "all", "all", draws=10) == {"points": 0.0, "low": 0.0, "high": 0.0}


def test_the_papers_score_is_the_librarys() -> None:
    random = np.random.default_rng(0)
    phi, centres = random.normal(size=(7, 6)), random.normal(size=(3, 6))
    wanted = scores_of(torch.tensor(phi), torch.tensor(centres))
    sources = gate.Familiar(centres, np.ones((3, 6)), np.eye(6), centres)
    assert gate.paper(phi, sources).tolist() == pytest.approx(wanted.tolist())


def test_the_whitened_score_is_the_librarys() -> None:
    random = np.random.default_rng(0)
    phi, centres = random.normal(size=(7, 6)) ** 2, random.normal(size=(3, 6))
    matrix = random.normal(size=(6, 6))
    wanted = scores_of(torch.tensor(phi), torch.tensor(phi[:3]), Whitening(torch.tensor(matrix), torch.tensor(centres)))
    sources = gate.Familiar(phi[:3], np.ones((3, 6)), matrix, centres)
    assert gate.whitened(phi, sources).tolist() == pytest.approx(wanted.tolist())


def test_other_scores_by_hand() -> None:
    phi, centres = np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 0.0]])
    variances = np.array([[1.0, 4.0], [4.0, 1.0]])
    sources = gate.Familiar(centres, variances, np.diag([1.0, 2.0]), np.array([[0.0, 2.0], [3.0, 0.0]]))
    assert gate.nearest(phi, sources) == pytest.approx(4)
    assert gate.own_radius(phi, sources) == pytest.approx((5 / 5**0.5 + 4 / 5**0.5) / 2)
    both = math.sqrt((9 / 1 + 16 / 4) / 2), math.sqrt((0 / 4 + 16 / 1) / 2)
    assert gate.standardised(phi, sources) == pytest.approx(min(both))
    densities = (13 + math.log(4)) / 2, (16 + math.log(4)) / 2
    assert gate.likelihood(phi, sources) == pytest.approx(min(densities))
    # (3, log 4) comes to (3, 2 log 4)
    away = math.hypot(3, 2 * math.log(4) - 2), 2 * math.log(4)
    assert gate.whitened_nearest(phi, sources) == pytest.approx(min(away))


@torch.no_grad()
def test_every_way_is_what_the_library_does() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = backbone("resnet18", classes=7).eval()
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    styles = {block: sources_of(model, [(images, [0, 0, 1, 1])], block) for block in POINTS}
    given = _batch(model, images, styles, WAYS)
    assert torch.equal(given["plain"].long(), model(images).argmax(dim=1))
    for name, way in WAYS.items():
        layers = {
            block: StyleShifting(styles[block].style, 0.0, variant=Variant(everything=True, fraction=share)).eval()
            for block, share in way.items()
        }
        from styleshift.attaching import attach

        with attach(model, layers) if layers else torch.no_grad():
            assert torch.equal(given[name].long(), model(images).argmax(dim=1)), name


def test_a_page_gets_its_tables_between_the_marks(found: dict[str, Any]) -> None:
    marks = "a\n<!-- table -->\nold\n<!-- end of table -->\nb\n<!-- choices -->\n<!-- end of choices -->\nc\n"
    page = gate.written_into(marks, found)
    assert page.startswith("a\n<!-- table -->\n| rule | photo | sketch | average |")
    assert "| auto, gate at layer1, layer2 | 0.0 (0) | 66.7 (67) | 33.33 |" in page
    assert "old" not in page
    assert "| sketch, mixstyle, seed 0 | layer1 | layer2 x 1 | +25.0 |" in page
    assert "| all models | layer1 | layer2 x 1 | +25.0 |" in page
    assert gate.written_into(page, found) == page
    with pytest.raises(ValueError, match="no place for the table"):
        gate.written_into("nothing", found)


def test_the_page_holds_the_committed_result() -> None:
    result = ROOT / "results" / "test-time" / "gate.json"
    if not result.is_file():
        pytest.skip(f"there is no {result}")
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    assert gate.written_into(page, json.loads(result.read_text())) == page


def test_an_interval_is_that_of_draws_of_models_and_images() -> None:
    """Two models with different leads, each draw by hand."""
    right = {"a": [1, 1, 1, 1, 0, 1], "b": [0, 1, 0, 0, 0, 0]}
    models = [
        gate.Model(name, "sketch", 0, "", "", [], {"target": {"it": np.array(own), "no": np.zeros(6)}}, {})
        for name, own in right.items()
    ]
    generator = np.random.default_rng(0)
    rows, images = generator.integers(2, size=(50, 2)).tolist(), generator.integers(6, size=(50, 6)).tolist()
    leads = list(right.values())
    drawn = [
        100 * sum(leads[model][image] for model in row for image in some) / 12
        for row, some in zip(rows, images, strict=True)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert gate.interval(models, "it", "no", draws=50) == {
        "points": 50.0,
        "low": round(float(low), 2),
        "high": round(float(high), 2),
    }
