"""The gate: it decides at one layer for a shift at another, and is itself invisible."""

import copy
import math
import pickle
import threading

import pytest
import torch
from torch import Tensor

from styleshift.layers._gating import Gate
from styleshift.layers.style_shifting import StyleShifting
from styleshift.style.shifting import far_score, shift, shifted_as
from styleshift.style.statistics import Style

FEATURES = torch.randn(6, 3, 5, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor(
    [1.0, 1, 1, 5, 9, 9]
).reshape(-1, 1, 1, 1)
SOURCES = Style(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), torch.ones(3, 3))
FAR = [False, False, False, True, True, True]
DEEPER = Style(torch.randn(2, 4, generator=torch.Generator().manual_seed(1)), torch.ones(2, 4))


def deeper(count: int) -> Tensor:
    return torch.randn(count, 4, 3, 3, generator=torch.Generator().manual_seed(2))


def gated(alpha: float = 4.0, variant: str = "ts") -> StyleShifting:
    return StyleShifting(DEEPER, variant=variant, gate=Gate(SOURCES, alpha)).eval()


def run(shifting: StyleShifting, features: Tensor) -> Tensor:
    assert shifting.gate is not None
    shifting.gate(features)
    return shifting(deeper(len(features)))


def test_it_gives_the_very_same_tensor() -> None:
    assert Gate(SOURCES)(FEATURES) is FEATURES


def test_what_it_decides_is_equation_7_at_its_own_layer() -> None:
    gate = Gate(SOURCES, 4.0)
    gate(FEATURES)
    assert torch.equal(gate.scores(FEATURES), far_score(FEATURES, SOURCES))
    assert gate.decided(deeper(6)).tolist() == FAR


def test_the_shift_moves_those_and_no_others() -> None:
    given, features = run(gated(), FEATURES), deeper(6)
    assert torch.equal(given[:3], features[:3])
    torch.testing.assert_close(given[3:], shift(features[3:], DEEPER, 0.0))


def test_a_sample_at_the_threshold_is_not_far() -> None:
    score = float(far_score(FEATURES, SOURCES)[3])
    for alpha, far in ((score, False), (math.nextafter(score, 0) - 1e-6, True)):
        gate = Gate(SOURCES, alpha)
        gate(FEATURES)
        assert bool(gate.decided(FEATURES)[3]) is far


@pytest.mark.parametrize("variant", ["soft", "partial=0.5"])
def test_other_variants_are_gated_too(variant: str) -> None:
    shifting = gated(variant=variant)
    wanted = shifted_as(shifting.variant, deeper(6), DEEPER, 99.0, far=torch.tensor(FAR))
    assert torch.equal(run(shifting, FEATURES), wanted)
    assert not torch.equal(wanted[3:], deeper(6)[3:])


def test_the_latest_forward_counts() -> None:
    shifting = gated()
    run(shifting, FEATURES)
    assert torch.equal(run(shifting, FEATURES[:3]), deeper(3))


def test_a_shift_whose_gate_has_seen_nothing_says_so() -> None:
    with pytest.raises(ValueError, match=r"needs a gate that has seen them .* it has seen none"):
        gated()(deeper(2))


def test_a_shift_whose_gate_has_seen_other_samples_says_so() -> None:
    shifting = gated()
    assert shifting.gate is not None
    shifting.gate(FEATURES)
    with pytest.raises(ValueError, match=r"a shift of 1 samples .* it has seen 6"):
        shifting(deeper(1))


def test_what_it_has_forgotten_is_gone() -> None:
    gate = Gate(SOURCES)
    gate(FEATURES)
    gate.forget()
    gate.forget()
    with pytest.raises(ValueError, match="has seen none"):
        gate.decided(FEATURES)


def test_each_thread_gets_its_own_decision() -> None:
    shifting, seen = gated(), {}
    assert shifting.gate is not None
    shifting.gate(FEATURES)

    def other() -> None:
        seen["other"] = run(shifting, FEATURES[:3])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert torch.equal(seen["other"], deeper(3))
    assert shifting.gate.decided(FEATURES).tolist() == FAR


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_decides_by_itself(copied: object) -> None:
    shifting = gated()
    run(shifting, FEATURES)
    double: StyleShifting = copied(shifting)  # type: ignore[operator]  # pytest hands it on as an object
    assert torch.equal(run(double, FEATURES[:3]), deeper(3))
    assert shifting.gate is not None
    assert shifting.gate.decided(FEATURES).tolist() == FAR


def test_its_centres_are_in_the_state_of_the_shift() -> None:
    assert {"gate.source_mean", "gate.source_std"} < set(gated().state_dict())


def test_what_it_remembers_is_its_own() -> None:
    sources = Style(SOURCES.mean.clone(), SOURCES.std.clone())
    gate = Gate(sources)
    sources.mean.zero_()
    assert torch.equal(gate.source_mean, SOURCES.mean)


def test_in_half_precision_it_decides_the_same() -> None:
    gate = Gate(SOURCES, 4.0)
    gate(FEATURES.bfloat16())
    assert gate.decided(FEATURES).tolist() == FAR


def test_an_empty_batch_is_decided() -> None:
    gate = Gate(SOURCES)
    gate(FEATURES[:0])
    assert gate.decided(deeper(0)).tolist() == []


def test_alpha_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha is at least 0"):
        Gate(SOURCES, -1.0)


def test_it_says_what_it_is() -> None:
    assert "3 sources, alpha=4.0" in repr(gated())
