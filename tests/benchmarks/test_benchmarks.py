"""What the benchmarks compare is the same work; and they run."""

import json
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks import __main__ as command
from benchmarks import layers, memory, planning, released, schedules, threads
from styleshift.style.mixing import dsu, efdmix, mixstyle
from styleshift.style.statistics import Style

FEATURES = torch.randn(6, 4, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3 + 1
PARTNERS = torch.tensor([3, 0, 5, 2, 1, 4])
SHARES = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0, 0.3], dtype=torch.float64)
NOISE = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

PAIRS = {
    "mixstyle": (lambda x: mixstyle(x, PARTNERS, SHARES, 1), lambda x: released.mixstyle(x, PARTNERS, SHARES)),
    "efdmix": (lambda x: efdmix(x, PARTNERS, SHARES), lambda x: released.efdmix(x, PARTNERS, SHARES)),
    "dsu": (lambda x: dsu(x, Style(*NOISE), 1), lambda x: released.dsu(x, *NOISE)),
}


def value_and_gradient(layer: object, features: Tensor) -> tuple[Tensor, Tensor]:
    leaf = features.clone().requires_grad_()
    assert callable(layer)
    styled = layer(leaf)
    styled.backward(features)
    return styled.detach(), leaf.grad


@pytest.mark.parametrize("name", PAIRS)
def test_ours_gives_what_the_released_algorithm_gives(name: str) -> None:
    ours, theirs = PAIRS[name]
    torch.testing.assert_close(ours(FEATURES), theirs(FEATURES))


@pytest.mark.parametrize("name", PAIRS)
def test_ours_has_the_gradient_of_the_released_algorithm(name: str) -> None:
    ours, theirs = PAIRS[name]
    torch.testing.assert_close(value_and_gradient(ours, FEATURES), value_and_gradient(theirs, FEATURES))


def test_every_layer_is_timed_forward_and_backward() -> None:
    found = layers.compare(1, (4, 2, 6, 6))
    assert [(it.what, it.work) for it in found] == [
        (name, work) for name in ("MixStyle", "EFDMix", "DSU") for work in ("forward", "forward+backward")
    ]
    assert all(it.ours > 0 for it in found)


def test_the_result_names_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "measured", lambda what, rounds: [{"what": what, "rounds": rounds}])
    command.main(["planning", "--rounds", "3", "--json", str(tmp_path / "p.json")])
    written = json.loads((tmp_path / "p.json").read_text())
    assert written["command"] == f"scripts/bench planning --json {tmp_path / 'p.json'}"
    assert written["measured"] == [{"what": "planning", "rounds": 3}]


def test_planning_is_measured_at_the_three_points() -> None:
    found = planning.compare(1, side=32)
    assert [it.what for it in found] == ["plan, layer1", "plan, layer2", "plan, layer3"]


def test_a_tried_schedule_changes_epochs_and_rate_alone() -> None:
    before, after = (kind.training for kind in (schedules.scale("cpu"), schedules.scheduled("3:0.02")))
    assert {name for name in before if before[name] != after[name]} == {"epochs", "learning_rate"}
    assert (after["epochs"], after["learning_rate"]) == (3, 0.02)


def test_schedules_are_compared_by_the_mean_over_methods() -> None:
    tried = [{"schedule": name, "validation": share} for name, share in (("a", 90.0), ("a", 91.0), ("b", 80.0))]
    assert schedules.means(tried) == {"a": 90.5}


def test_a_schedule_may_say_how_often_sb_acts_and_where_gradients_are_clipped() -> None:
    said = {tried: schedules.scheduled(tried).training for tried in ("3:0.02", "3:0.02:0.5", "3:0.02:0.5:0")}
    assert [(how["sb_share"], how["clip"]) for how in said.values()] == [(1, 5), (0.5, 5), (0.5, None)]
    assert schedules._without_share("3:0.02:0.5:0") == "3:0.02:1:0"


def test_memory_is_measured_on_a_step_of_the_labs_own_training() -> None:
    found = memory.trained("float32", 2, 1, backbone="smallnet")
    assert (found.precision, found.batch, found.steps) == ("float32", 2, 1)
    assert found.gib > 0.1


def test_memory_is_read_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, int]] = []
    monkeypatch.setattr(memory, "_alone", lambda *case: asked.append(case))
    memory.compare(3)
    assert asked == [("bfloat16", 128, 3), ("float32", 64, 3)]


@pytest.mark.slow
def test_a_training_at_224_pixels_stays_within_four_gibibytes() -> None:
    assert all(peak.gib < memory.LIMIT for peak in memory.compare(2))


def test_trainings_are_timed_together_and_beside_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_together", lambda *case: threads.Together(*case[:3], images_per_second=100.0))
    assert [str(each) for each in threads.compare(steps=1)] == [
        "1 at once, 2 threads each: 100 images/s",
        "2 at once, 1 threads each: 100 images/s",
        "1 at once, 2 threads each, beside other work: 100 images/s",
        "2 at once, 1 threads each, beside other work: 100 images/s",
    ]


def test_other_work_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command: started.append(start(command)) or started[-1])
    with threads._other_work(True):
        assert started[0].poll() is None
    assert started[0].poll() is not None
    with threads._other_work(False):
        assert len(started) == 1
