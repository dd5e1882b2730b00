"""The layer of test-time style shifting: what it remembers, and when it acts."""

import copy
import math
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from styleshift.layers.style_shifting import StyleShifting
from styleshift.style.shifting import Variant, far_score, shift, shifted_as
from styleshift.style.statistics import Style

FEATURES = torch.randn(5, 3, 6, 6, generator=torch.Generator().manual_seed(0)) * 2


def styles(count: int, channels: int = 3) -> Style:
    generator = torch.Generator().manual_seed(count)
    mean, std = torch.randn(2, count, channels, generator=generator)
    return Style(mean, std.abs() + 0.5)


SOURCES = styles(3)


def test_in_eval_mode_it_is_the_shift() -> None:
    layer = StyleShifting(SOURCES, alpha=1.2).eval()
    assert torch.equal(layer(FEATURES), shift(FEATURES, SOURCES, 1.2))


def test_in_training_mode_it_gives_the_very_same_tensor() -> None:
    assert StyleShifting(SOURCES, alpha=0.0).train()(FEATURES) is FEATURES


def test_always_active_it_shifts_in_training_mode_too() -> None:
    layer = StyleShifting(SOURCES, alpha=0.0, active="always").train()
    assert torch.equal(layer(FEATURES), shift(FEATURES, SOURCES, 0.0))


def test_left_alone_its_alpha_is_the_papers_3() -> None:
    assert StyleShifting(SOURCES).alpha == 3


def test_its_scores_are_those_that_decide() -> None:
    layer = StyleShifting(SOURCES, alpha=1.2).eval()
    assert torch.equal(layer.scores(FEATURES), far_score(FEATURES, SOURCES))
    changed = (layer(FEATURES) != FEATURES).flatten(1).any(dim=1)
    assert torch.equal(changed, layer.scores(FEATURES) > 1.2)


@pytest.mark.parametrize("variant", ["ts", "all", "sampled", "soft", "partial=0.5", Variant(True, "soft", 0.5)])
def test_it_shifts_in_any_variant(variant: str | Variant) -> None:
    layer = StyleShifting(SOURCES, 1.2, variant=variant, samples=styles(7)).eval()
    expected = shifted_as(Variant.named(variant), FEATURES, SOURCES, 1.2, styles(7))
    assert torch.equal(layer(FEATURES), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_gives_back_the_dtype_and_layout_it_takes(dtype: torch.dtype, layout: torch.memory_format) -> None:
    features = FEATURES.to(dtype).contiguous(memory_format=layout)
    shifted = StyleShifting(SOURCES, alpha=0.0).eval()(features)
    assert shifted.dtype == dtype
    assert shifted.is_contiguous(memory_format=layout)


def test_an_empty_batch_stays_empty() -> None:
    assert StyleShifting(SOURCES).eval()(FEATURES[:0]).shape == (0, 3, 6, 6)


def test_what_it_remembers_is_its_own() -> None:
    sources = styles(3)
    layer = StyleShifting(sources)
    sources.mean.zero_()
    assert torch.equal(layer.sources.phi, SOURCES.phi)


def test_it_has_nothing_to_learn() -> None:
    learned = Style(SOURCES.mean.clone().requires_grad_(), SOURCES.std.clone().requires_grad_())
    layer = StyleShifting(learned)
    assert list(layer.parameters()) == []
    assert not layer.sources.phi.requires_grad


def test_its_state_is_the_styles() -> None:
    layer = StyleShifting(SOURCES, variant="sampled", samples=styles(7))
    assert set(layer.state_dict()) == {"source_mean", "source_std", "sample_mean", "sample_std"}
    assert set(StyleShifting(SOURCES).state_dict()) == {"source_mean", "source_std"}


def test_a_loaded_state_brings_the_styles() -> None:
    zeros = Style(torch.zeros(3, 3), torch.ones(3, 3))
    layer = StyleShifting(zeros, alpha=0.0)
    layer.load_state_dict(StyleShifting(SOURCES).state_dict())
    assert torch.equal(layer.eval()(FEATURES), shift(FEATURES, SOURCES, 0.0))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_does_the_same(copied: Callable[[StyleShifting], StyleShifting]) -> None:
    layer = StyleShifting(SOURCES, alpha=0.0, variant="sampled", samples=styles(7)).eval()
    assert torch.equal(copied(layer)(FEATURES), layer(FEATURES))


def test_autocast_changes_nothing() -> None:
    layer = StyleShifting(SOURCES, alpha=1.2).eval()
    expected = layer(FEATURES)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(FEATURES), expected)


def test_gradients_reach_the_features() -> None:
    features = FEATURES.clone().requires_grad_()
    StyleShifting(SOURCES, alpha=0.0).eval()(features).square().sum().backward()
    assert features.grad is not None
    assert features.grad.abs().sum() > 0


def test_it_says_what_it_is() -> None:
    said = repr(StyleShifting(SOURCES, alpha=2.5, variant="partial"))
    assert "3 sources, alpha=2.5" in said
    assert "fraction=0.8" in said


@pytest.mark.parametrize("alpha", [-0.1, math.nan])
def test_an_alpha_below_0_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"at least 0 .* got {alpha}"):
        StyleShifting(SOURCES, alpha)


def test_a_variant_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"ts, all, sampled, soft, partial.* got 'nearer'"):
        StyleShifting(SOURCES, variant="nearer")


def test_the_sampled_variant_is_refused_without_samples() -> None:
    with pytest.raises(ValueError, match="give their styles as `samples`"):
        StyleShifting(SOURCES, variant="sampled")


@pytest.mark.parametrize("samples", [styles(0), styles(4, channels=2)])
def test_samples_of_other_channels_and_no_samples_are_refused(samples: Style) -> None:
    with pytest.raises(ValueError, match=r"at least one training sample.*beside \[3, 3\]"):
        StyleShifting(SOURCES, samples=samples)


def test_no_sources_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at least one domain; got mean \[0, 3\]"):
        StyleShifting(styles(0))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_sources_that_are_no_numbers_are_refused(value: float) -> None:
    broken = Style(SOURCES.mean.clone().index_fill_(0, torch.tensor([1]), value), SOURCES.std)
    with pytest.raises(ValueError, match="NaN or infinity"):
        StyleShifting(broken)


def test_features_of_other_channels_are_refused_with_both_numbers() -> None:
    layer = StyleShifting(styles(3, channels=4)).eval()
    with pytest.raises(ValueError, match=r"features of 3 channels; got mean \[3, 4\]"):
        layer(FEATURES)


def test_a_time_of_action_there_is_not_is_refused(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import torch
from styleshift.layers.style_shifting import StyleShifting
from styleshift.style.statistics import Style
try:
    StyleShifting(Style(torch.zeros(2, 3), torch.ones(2, 3)), active="train")
except ValueError as error:
    print(error)
""")
    assert "'eval' or 'always'; got 'train'" in said


def test_compiled_and_exported_it_does_the_same_for_any_batch(plain_python: Callable[[str], str]) -> None:
    plain_python("""
import torch
from styleshift.layers.style_shifting import StyleShifting
from styleshift.style.statistics import Style

torch.manual_seed(0)
sources = Style(torch.randn(3, 4), torch.rand(3, 4) + 0.5)
features = torch.randn(6, 4, 5, 5) + torch.tensor([0.0, 0, 0, 9, 9, 9])[:, None, None, None]
layer = StyleShifting(sources, alpha=4.0).eval()
near = layer.scores(features) <= 4
assert near.tolist() == [True] * 3 + [False] * 3
exported = torch.export.export(layer, (features,), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=False)
compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
for shifted in (compiled, exported.module()):
    torch.testing.assert_close(shifted(features), layer(features), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(shifted(features[3:]), layer(features[3:]), rtol=1e-5, atol=1e-5)
    assert torch.equal(shifted(features)[near], features[near])
""")


def test_a_tensor_of_the_graph_is_not_kept() -> None:
    layer = StyleShifting(SOURCES, alpha=0.0).eval()
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    shifted: Tensor = layer(FEATURES.clone().requires_grad_())
    shifted.sum().backward()
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.state_dict().items())
