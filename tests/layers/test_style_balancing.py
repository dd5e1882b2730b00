"""The layer of style balancing: what it must be told, what it draws, what it counts."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from styleshift.layers.style_balancing import StyleBalancing

CLASSES = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1])
DOMAINS = torch.tensor([0, 0, 0, 0, 1, 2, 1, 1, 2])


def of_domains(domains: Tensor, seed: int = 0) -> Tensor:
    """Features that show their domain: values between 10 n and 10 n + 1."""
    chance = torch.rand(len(domains), 2, 4, 4, generator=torch.Generator().manual_seed(seed))
    return chance + 10 * domains[:, None, None, None]


def shown_by(features: Tensor) -> Tensor:
    """The domain that features show."""
    return (features.flatten(1).mean(dim=1) // 10).long()


def layer_with(seed: int = 0, **settings: Any) -> StyleBalancing:
    return StyleBalancing(generator=torch.Generator().manual_seed(seed), **settings).train()


def balanced_by(layer: StyleBalancing, classes: Tensor, domains: Tensor) -> Tensor:
    with layer.given(classes, domains):
        balanced: Tensor = layer(of_domains(domains))
    return balanced


def test_in_eval_mode_it_gives_the_very_same_tensor_and_asks_for_no_labels() -> None:
    features = of_domains(DOMAINS)
    assert StyleBalancing(3).eval()(features) is features


def test_every_class_is_in_every_style_afterwards() -> None:
    styles = shown_by(balanced_by(layer_with(n_domains=3), CLASSES, DOMAINS))
    assert torch.bincount(styles[CLASSES == 0], minlength=3).tolist() == [2, 2, 2]
    assert torch.bincount(styles[CLASSES == 1], minlength=3).tolist() == [1, 1, 1]


def test_samples_that_do_not_move_stay_to_the_last_bit() -> None:
    features = of_domains(DOMAINS)
    balanced = balanced_by(layer_with(n_domains=3), CLASSES, DOMAINS)
    stayed = shown_by(balanced) == DOMAINS
    assert torch.equal(balanced[stayed], features[stayed])


def test_a_moved_sample_keeps_the_order_of_its_places() -> None:
    features, balanced = of_domains(DOMAINS), balanced_by(layer_with(n_domains=3), CLASSES, DOMAINS)
    assert torch.equal(balanced.flatten(2).argsort(dim=-1), features.flatten(2).argsort(dim=-1))


def test_a_balanced_batch_comes_back_as_the_very_same_tensor() -> None:
    features, labels = of_domains(torch.arange(3)), torch.zeros(3, dtype=torch.int64)
    layer = layer_with(n_domains=3)
    with layer.given(labels, torch.arange(3)):
        assert layer(features) is features


def test_it_counts_moves_and_those_into_absent_domains() -> None:
    layer = layer_with(n_domains=4)
    balanced_by(layer, torch.zeros(8, dtype=torch.int64), torch.tensor([0, 0, 0, 0, 0, 0, 1, 2]))
    assert (layer.moved, layer.dropped) == (2, 2)
    balanced_by(layer, torch.zeros(4, dtype=torch.int64), torch.tensor([0, 1, 2, 3]))
    assert (layer.moved, layer.dropped) == (2, 2)


def test_without_a_number_of_domains_the_largest_id_so_far_counts() -> None:
    layer, labels = layer_with(), torch.zeros(4, dtype=torch.int64)
    balanced_by(layer, labels, torch.tensor([0, 0, 1, 1]))
    assert (layer.moved, layer.dropped) == (0, 0)
    balanced_by(layer, labels, torch.tensor([0, 1, 2, 3]))
    balanced_by(layer, labels, torch.tensor([0, 0, 1, 1]))
    assert (layer.moved, layer.dropped) == (0, 2)


def test_class_agnostic_it_balances_the_domains_alone() -> None:
    classes, domains = torch.arange(6), torch.tensor([0, 0, 0, 0, 1, 2])
    assert torch.equal(balanced_by(layer_with(n_domains=3), classes, domains), of_domains(domains))
    agnostic = shown_by(balanced_by(layer_with(n_domains=3, class_agnostic=True), classes, domains))
    assert torch.bincount(agnostic).tolist() == [2, 2, 2]


def test_rounding_up_moves_single_samples_too() -> None:
    classes, domains = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 0, 1, 2])
    whole, up = layer_with(n_domains=3), layer_with(n_domains=3, rounding="ceil")
    balanced_by(whole, classes, domains)
    balanced_by(up, classes, domains)
    assert (whole.moved, up.moved) == (1, 4)


def test_random_selection_follows_the_generator() -> None:
    domains = torch.tensor([0] * 9 + [1, 2])
    classes = torch.zeros_like(domains)
    runs = [balanced_by(layer_with(seed, n_domains=3, selection="random"), classes, domains) for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(shown_by(runs[0]), shown_by(runs[2]))


def test_equal_seeds_give_equal_features_and_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    once = balanced_by(layer_with(5, n_domains=3), CLASSES, DOMAINS)
    assert torch.equal(balanced_by(layer_with(5, n_domains=3), CLASSES, DOMAINS), once)
    assert torch.equal(torch.get_rng_state(), before)


def gradient_of(layer: StyleBalancing) -> Tensor:
    features = of_domains(DOMAINS).requires_grad_()
    with layer.given(CLASSES, DOMAINS):
        layer(features).sum().backward()
    assert features.grad is not None
    return features.grad.mean(dim=(1, 2, 3))


def test_the_lenders_receive_a_gradient_of_1_a_move_together() -> None:
    layer = layer_with(n_domains=3)
    gradient = gradient_of(layer)
    assert (gradient >= 1).all()
    torch.testing.assert_close(gradient.sum().item(), float(len(DOMAINS) + layer.moved))


def test_with_a_detached_style_nobody_receives_more_than_its_own() -> None:
    assert (gradient_of(layer_with(n_domains=3, detach_style=True)) == 1).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_gives_back_the_dtype_and_layout_it_takes(dtype: torch.dtype, layout: torch.memory_format) -> None:
    layer, features = layer_with(n_domains=3), of_domains(DOMAINS).to(dtype).contiguous(memory_format=layout)
    with layer.given(CLASSES, DOMAINS):
        balanced = layer(features)
    assert balanced.dtype == dtype
    assert balanced.is_contiguous(memory_format=layout)
    assert layer.moved == 3


@pytest.mark.parametrize("n_domains", [None, 3])
def test_an_empty_batch_stays_empty(n_domains: int | None) -> None:
    nobody = torch.zeros(0, dtype=torch.int64)
    assert balanced_by(layer_with(n_domains=n_domains), nobody, nobody).shape == (0, 2, 4, 4)


def test_the_labels_may_be_small_integers() -> None:
    once = balanced_by(layer_with(n_domains=3), CLASSES, DOMAINS)
    small = balanced_by(layer_with(n_domains=3), CLASSES.to(torch.uint8), DOMAINS.to(torch.int32))
    assert torch.equal(small, once)


def test_it_has_no_state_of_its_own_in_a_models_weights() -> None:
    assert StyleBalancing(3).state_dict() == {}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_draws_what_the_original_would(copied: Callable[[StyleBalancing], StyleBalancing]) -> None:
    layer = layer_with(3, n_domains=3)
    twin = copied(layer)
    assert torch.equal(balanced_by(twin, CLASSES, DOMAINS), balanced_by(layer, CLASSES, DOMAINS))


def test_a_block_inside_a_block_gives_back_the_outer_labels() -> None:
    layer = layer_with(n_domains=3)
    with layer.given(CLASSES, DOMAINS):
        balanced_by(layer, CLASSES[:4], DOMAINS[:4])
        layer(of_domains(DOMAINS))


def test_labels_are_forgotten_after_the_block_also_after_an_error() -> None:
    layer = layer_with(n_domains=3)
    with pytest.raises(ZeroDivisionError), layer.given(CLASSES, DOMAINS):
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="must know them"):
        layer(of_domains(DOMAINS))


def test_without_labels_it_says_how_to_give_them() -> None:
    with pytest.raises(RuntimeError, match=r"with layer.given\(classes, domains\)"):
        StyleBalancing(3)(of_domains(DOMAINS))


def test_labels_of_another_batch_are_refused_with_both_numbers() -> None:
    layer = layer_with(n_domains=3)
    with pytest.raises(ValueError, match="of 9 samples, the features of 4"), layer.given(CLASSES, DOMAINS):
        layer(of_domains(DOMAINS[:4]))


def test_a_domain_beyond_their_number_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 1; got 0 to 2"):
        balanced_by(layer_with(n_domains=2), CLASSES, DOMAINS)


@pytest.mark.parametrize("settings", [{"n_domains": 0}, {"alpha": 0.0}, {"alpha": -1.0}, {"alpha": float("nan")}])
def test_numbers_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="n_domains is at least 1 and alpha a number above 0"):
        StyleBalancing(**settings)


REFUSED = {
    "selection is one of 'least_missed', 'random'; got 'nearest'": "StyleBalancing(3, selection='nearest')",
    "rounding is one of 'whole', 'ceil'; got 'floor'": "StyleBalancing(3, rounding='floor')",
    "3 classes and 2 domains": "given(labels, labels[:2])",
    "classes is one integer a sample, [B]; got torch.float32 [3]": "given(labels.float(), labels)",
    "domains is one integer a sample, [B]; got torch.bool [3]": "given(labels, labels > 0)",
    "domains is one integer a sample, [B]; got torch.int64 [3, 1]": "given(labels, labels[:, None])",
    "domains is a tensor of one integer a sample, [B]; got list": "given(labels, [0, 1, 2])",
}


def test_settings_and_labels_that_cannot_be_are_refused_with_what_came(plain_python: Callable[[str], str]) -> None:
    calls = ", ".join(f"lambda: {call}" for call in REFUSED.values())
    said = plain_python(f"""
import json
import torch
from styleshift.layers.style_balancing import StyleBalancing

def given(classes, domains):
    with StyleBalancing(3).given(classes, domains):
        pass

labels, said = torch.arange(3), []
for call in ({calls}):
    try:
        call()
    except (ValueError, TypeError) as error:
        said.append(str(error))
print(json.dumps(said))
""")
    for expected, message in zip(REFUSED, json.loads(said), strict=True):
        assert expected in message


def test_in_a_compiled_model_it_does_the_same(plain_python: Callable[[str], str]) -> None:
    plain_python("""
import torch
from torch import nn
from styleshift.layers.style_balancing import StyleBalancing

def network():
    torch.manual_seed(0)
    balancing = StyleBalancing(3, generator=torch.Generator().manual_seed(1))
    return nn.Sequential(nn.Conv2d(3, 8, 3), balancing, nn.Conv2d(8, 4, 3))

plain, traced = network(), network()
compiled = torch.compile(traced, backend="aot_eager")
images, classes = torch.randn(12, 3, 9, 9), torch.zeros(12, dtype=torch.int64)
for counts in ([8, 3, 1], [2, 9, 1]):
    domains = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    with plain[1].given(classes, domains), traced[1].given(classes, domains):
        expected, given = plain(images), compiled(images)
    torch.testing.assert_close(given, expected)
    expected.square().mean().backward()
    given.square().mean().backward()
    torch.testing.assert_close(traced[0].weight.grad, plain[0].weight.grad)
assert traced[1].moved == plain[1].moved > 0
without = torch.compile(traced.eval(), backend="aot_eager", fullgraph=True)
torch.testing.assert_close(without(images), plain.eval()(images))
""")


def test_it_says_what_it_is() -> None:
    assert "n_domains=3, alpha=0.1, selection='random'" in repr(StyleBalancing(3, selection="random"))
