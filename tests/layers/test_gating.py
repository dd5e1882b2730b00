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
from styleshift.style.statistics import Style, style_of
from styleshift.style.whitening import Whitening, logged

FEATURES = torch.randn(6, 3, 5, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor(
    [1.0, 1, 1, 5, 9, 9]
).reshape(-1, 1, 1, 1)
SOURCES = Style(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), torch.ones(3, 3))
FAR = [False, False, False, True, True, True]
WHITE_ALPHA = 2.0
MATRIX = torch.diag(torch.tensor([2.0, 1, 1, 1, 1, 0.5], dtype=torch.float64)) + 0.1
WHITENING = Whitening(MATRIX, logged(SOURCES.phi).double() @ MATRIX)
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


def test_with_a_whitening_it_measures_what_styles_become_by_it() -> None:
    own, centres = (
        torch.cat([mean.double(), std.double().log()], dim=1) @ MATRIX for mean, std in (style_of(FEATURES), SOURCES)
    )
    gaps, apart = (own[:, None] - centres).norm(dim=2), (centres - centres.mean(dim=0)).norm(dim=1)
    found = Gate(SOURCES, 4.0, WHITENING).scores(FEATURES)
    torch.testing.assert_close(found, (gaps.mean(dim=1) / apart.mean()).float())
    assert not torch.allclose(found, Gate(SOURCES).scores(FEATURES), rtol=0.01)


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
    assert set(Gate(SOURCES, whitening=WHITENING).state_dict()) == {
        "source_mean",
        "source_std",
        "white_matrix",
        "white_centres",
    }


def test_what_it_remembers_is_its_own() -> None:
    sources = Style(SOURCES.mean.clone(), SOURCES.std.clone())
    whitening = Whitening(*(tensor.clone() for tensor in WHITENING))
    gate = Gate(sources, whitening=whitening)
    sources.mean.zero_()
    whitening.matrix.zero_()
    whitening.centres.zero_()
    assert torch.equal(gate.source_mean, SOURCES.mean)
    assert torch.equal(gate.white_matrix, MATRIX)
    assert torch.equal(gate.white_centres, WHITENING.centres)


@pytest.mark.parametrize(("whitening", "alpha"), [(None, 4.0), (WHITENING, WHITE_ALPHA)])
def test_in_half_precision_it_decides_the_same(whitening: Whitening | None, alpha: float) -> None:
    gate = Gate(SOURCES, alpha, whitening)
    for features in (FEATURES.bfloat16(), FEATURES.half()):
        gate(features)
        assert gate.decided(features).tolist() == FAR


@pytest.mark.parametrize("whitening", [None, WHITENING])
def test_under_autocast_it_scores_the_same(whitening: Whitening | None) -> None:
    gate = Gate(SOURCES, 4.0, whitening)
    wanted = gate.scores(FEATURES)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(gate.scores(FEATURES), wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_moved_to_another_precision_its_own_numbers_stay_as_they_were(dtype: torch.dtype) -> None:
    # a matrix of more than 65,504 would be infinite in half precision, and every score NaN: far from nothing
    gate = Gate(SOURCES, 4.0, Whitening(MATRIX * 1e6, WHITENING.centres * 1e6))
    before = {name: tensor.clone() for name, tensor in gate.state_dict().items()}
    wanted = gate.scores(FEATURES)
    gate.to(dtype)
    assert {name: tensor.dtype for name, tensor in gate.state_dict().items()} == {
        "source_mean": torch.float32,
        "source_std": torch.float32,
        "white_matrix": torch.float64,
        "white_centres": torch.float64,
    }
    assert all(torch.equal(tensor, before[name]) for name, tensor in gate.state_dict().items())
    assert torch.equal(gate.scores(FEATURES), wanted)


def test_it_goes_where_the_model_goes() -> None:
    gate = Gate(SOURCES, 4.0, WHITENING).to("meta")
    assert {tensor.device.type for tensor in gate.state_dict().values()} == {"meta"}
    assert {tensor.device.type for tensor in gate.to_empty(device="cpu").state_dict().values()} == {"cpu"}


def test_an_empty_batch_is_decided() -> None:
    gate = Gate(SOURCES)
    gate(FEATURES[:0])
    assert gate.decided(deeper(0)).tolist() == []


def test_alpha_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha is at least 0"):
        Gate(SOURCES, -1.0)


def test_it_says_what_it_is() -> None:
    assert "3 sources, alpha=4.0" in repr(gated())
