"""New styles from a batch: what holds for every method; MixStyle, EFDMix and CrossNorm against plain Python."""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import config
from torch import Tensor

from styleshift.style.mixing import correlated_style, crossnorm, dsu, efdmix, mixed_style, mixstyle
from styleshift.style.statistics import Style, style_of
from styleshift.style.transfer import adain, efdm

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LAYOUTS = [torch.contiguous_format, torch.channels_last]
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
BOX, OTHER_BOX = (slice(1, 3), slice(0, 2)), (slice(0, 4), slice(2, 5))

Rows: TypeAlias = list[list[float]]

# each with draws that depend on the number of samples alone
METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "mixstyle": lambda maps: mixstyle(maps, partners_of(len(maps)), shares(len(maps))),
    "efdmix": lambda maps: efdmix(maps, partners_of(len(maps)), shares(len(maps))),
    "dsu": lambda maps: dsu(maps, normal(len(maps), maps.shape[1])),
    "correlated_style": lambda maps: correlated_style(maps, normal(len(maps), maps.shape[1]), shares(len(maps))),
    "crossnorm": lambda maps: crossnorm(maps, partners_of(len(maps))),
    "crossnorm of crops": lambda maps: crossnorm(maps, partners_of(len(maps)), BOX, OTHER_BOX),
}
EACH_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As in production: types unchecked. The check would come before our own words."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def normal(rows: int, channels: int, seed: int = 0) -> Style:
    return Style(noise(rows, channels, seed=seed + 1000), noise(rows, channels, seed=seed + 2000))


def partners_of(samples: int, seed: int = 0) -> Tensor:
    return torch.randperm(samples, generator=torch.Generator().manual_seed(seed))


def shares(samples: int, seed: int = 0) -> Tensor:
    return torch.rand(samples, generator=torch.Generator().manual_seed(seed + 3000))


def ones(samples: int) -> Tensor:
    return torch.ones(samples)


def plain_statistics(features: Tensor, correction: int = 0) -> tuple[Rows, Rows]:
    """Eqs. 1 and 2, or released code's unbiased variance, with 1e-6 below the root."""
    means, stds = [], []
    for sample in features.flatten(2).tolist():
        means.append([sum(channel) / len(channel) for channel in sample])
        squares = [sum((x - m) ** 2 for x in channel) for channel, m in zip(sample, means[-1], strict=True)]
        places = max(len(sample[0]) - correction, 1)
        stds.append([math.sqrt(total / places + 1e-6) for total in squares])
    return means, stds


def plain_restyle(features: Tensor, own: tuple[Rows, Rows], new: tuple[Rows, Rows]) -> Tensor:
    """sigma_new (x - mu) / sigma + mu_new."""
    restyled = torch.empty(features.shape, dtype=torch.float64).flatten(2)
    for b, sample in enumerate(features.flatten(2).tolist()):
        for c, channel in enumerate(sample):
            for place, x in enumerate(channel):
                restyled[b, c, place] = new[1][b][c] * (x - own[0][b][c]) / own[1][b][c] + new[0][b][c]
    return restyled.view(features.shape)


def plain_mixed(statistic: Rows, partners: Tensor, own_share: Tensor) -> Rows:
    return [
        [share * own + (1 - share) * other for own, other in zip(statistic[b], statistic[partner], strict=True)]
        for b, (partner, share) in enumerate(zip(partners.tolist(), own_share.tolist(), strict=True))
    ]


def rough(dtype: torch.dtype) -> float:
    return 1e-9 if dtype == torch.float64 else 1e-4 + torch.finfo(dtype).eps


# what holds for every method


@EACH_METHOD
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_and_memory_layout_are_kept(
    method: Callable[[Tensor], Tensor], dtype: torch.dtype, layout: torch.memory_format
) -> None:
    changed = method(noise(3, 2, 4, 5).to(dtype).contiguous(memory_format=layout))
    assert changed.dtype == dtype
    assert changed.is_contiguous(memory_format=layout)


@EACH_METHOD
def test_the_features_given_are_not_changed(method: Callable[[Tensor], Tensor]) -> None:
    features = noise(3, 2, 4, 5)
    before = features.clone()
    method(features)
    assert torch.equal(features, before)


@EACH_METHOD
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_samples_stay_none(method: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    assert method(torch.zeros(0, 2, 4, 5, dtype=dtype)).shape == (0, 2, 4, 5)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"crossnorm of crops"}))  # there, another crop lends the style
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_sample_without_another_is_unchanged(name: str, dtype: torch.dtype) -> None:
    features = noise(1, 2, 4, 5).to(dtype)
    torch.testing.assert_close(METHODS[name](features), features, rtol=rough(dtype), atol=rough(dtype))


@EACH_METHOD
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_of_a_thousand_does_not_overflow(method: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    # released code squares in half precision: 65504 is the largest float16
    features = (noise(4, 2, 28, 28) * 1e3).to(dtype)
    expected = method(features.double())
    torch.testing.assert_close(method(features).double(), expected, rtol=0, atol=4e3 * torch.finfo(dtype).eps)


@EACH_METHOD
def test_dead_and_constant_channels_stay_finite_with_their_gradients(method: Callable[[Tensor], Tensor]) -> None:
    features = noise(3, 2, 4, 5)
    features[0], features[1, 0] = 0, 7
    leaf = features.requires_grad_()
    changed = method(leaf)
    changed.square().sum().backward()
    assert changed.isfinite().all()
    assert leaf.grad.isfinite().all()


@EACH_METHOD
@pytest.mark.parametrize("maps", [torch.zeros(2, 3, 4), torch.zeros(2, 3, 4, 5, dtype=torch.int64)])
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_feature_map_is_refused_with_type_and_shape(
    method: Callable[[Tensor], Tensor], maps: Tensor
) -> None:
    with pytest.raises(ValueError, match=r"\[B, C, H, W\].* Attach to a layer that gives maps") as refused:
        method(maps)
    assert f"got {maps.dtype} {list(maps.shape)}" in str(refused.value)


MIXING = [mixstyle, efdmix, lambda maps, partners, own_share: crossnorm(maps, partners)]


@pytest.mark.parametrize("mix", MIXING, ids=["mixstyle", "efdmix", "crossnorm"])
@given(shape=SHAPES, dtype=st.sampled_from([torch.float32, torch.float64]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20)
def test_samples_in_another_order_are_mixed_the_same(
    mix: Callable[..., Tensor], shape: tuple[int, ...], dtype: torch.dtype, seed: int
) -> None:
    features, partners, own_share = noise(*shape, seed=seed).to(dtype), partners_of(shape[0], seed), shares(shape[0])
    order = partners_of(shape[0], seed + 1)
    renumbered = order.argsort()[partners[order]]
    expected = mix(features, partners, own_share)[order]
    torch.testing.assert_close(mix(features[order], renumbered, own_share[order]), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mix", MIXING, ids=["mixstyle", "efdmix", "crossnorm"])
def test_nan_reaches_its_own_channel_and_that_of_whom_it_lends_to(mix: Callable[..., Tensor]) -> None:
    features = noise(4, 2, 3, 3)
    features[1, 0] = math.nan
    spoilt = mix(features, torch.tensor([2, 3, 1, 0]), torch.full((4,), 0.5)).isnan()
    assert spoilt.all(dim=(2, 3)).tolist() == spoilt.any(dim=(2, 3)).tolist()
    assert spoilt.any(dim=(2, 3)).tolist() == [[False, False], [True, False], [True, False], [False, False]]


# MixStyle


@given(
    shape=SHAPES,
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    correction=st.sampled_from([0, 1]),
    scale=st.sampled_from([1e-4, 1.0, 1e3]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=80)
def test_mixstyle_is_the_plain_formula(
    shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format, correction: int, scale: float, seed: int
) -> None:
    features = (noise(*shape, seed=seed) * scale).to(dtype).contiguous(memory_format=layout)
    partners, own_share = partners_of(shape[0], seed), shares(shape[0], seed)
    own = plain_statistics(features, correction)
    mean, std = (plain_mixed(part, partners, own_share) for part in own)
    expected = plain_restyle(features, own, (mean, std))
    mixed = mixstyle(features, partners, own_share, correction).double()
    torch.testing.assert_close(mixed, expected, rtol=rough(dtype), atol=rough(dtype) * scale)


def test_mixstyle_without_a_share_of_ones_own_is_adain_to_the_partner() -> None:
    features, partners = noise(4, 3, 4, 5), torch.tensor([2, 3, 1, 0])
    expected = adain(features, style_of(features).rows(partners))
    assert torch.equal(mixstyle(features, partners, torch.zeros(4)), expected)


@pytest.mark.parametrize("correction", [0, 1])
def test_the_gradient_of_mixstyle_is_the_mixed_deviation_over_the_own(correction: int) -> None:
    features, partners, own_share = noise(4, 2, 3, 3), torch.tensor([2, 3, 1, 0]), shares(4)
    leaf, weight = features.clone().requires_grad_(), noise(4, 2, 3, 3, seed=1)
    (mixstyle(leaf, partners, own_share, correction) * weight).sum().backward()
    _, std = plain_statistics(features, correction)
    mixed = plain_mixed(std, partners, own_share)
    ratio = torch.tensor(mixed, dtype=torch.float64) / torch.tensor(std, dtype=torch.float64)
    torch.testing.assert_close(leaf.grad, weight * ratio[:, :, None, None], rtol=1e-6, atol=1e-9)


def test_a_quarter_of_one_style_and_the_rest_of_the_other() -> None:
    first = Style(torch.tensor([[4.0], [1.0]]), torch.tensor([[8.0], [2.0]]))
    second = Style(torch.tensor([[0.0], [3.0]]), torch.tensor([[4.0], [6.0]]))
    mixed = mixed_style(first, second, torch.tensor([0.25, 1.0], dtype=torch.float64))
    assert mixed.phi.tolist() == [[1, 5], [1, 2]]
    assert mixed.phi.dtype == torch.float32


# EFDMix


@given(shape=SHAPES, dtype=st.sampled_from(DTYPES), layout=st.sampled_from(LAYOUTS), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_efdmix_is_the_plain_formula(
    shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format, seed: int
) -> None:
    # rounded: many are equal
    features = ((noise(*shape, seed=seed) * 3).round() / 4).to(dtype).contiguous(memory_format=layout)
    partners, own_share = partners_of(shape[0], seed), shares(shape[0], seed)
    expected, x = torch.empty(shape, dtype=torch.float64).flatten(2), features.flatten(2).tolist()
    for b, partner in enumerate(partners.tolist()):
        for c in range(shape[1]):
            order = sorted(range(shape[2] * shape[3]), key=x[b][c].__getitem__)
            for tau, value in zip(order, sorted(x[partner][c]), strict=True):
                expected[b, c, tau] = own_share[b].item() * x[b][c][tau] + (1 - own_share[b].item()) * value
    mixed = efdmix(features, partners, own_share).double()
    torch.testing.assert_close(mixed, expected.view(shape), rtol=rough(dtype), atol=rough(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_efdmix_with_all_of_ones_own_is_the_identity(dtype: torch.dtype) -> None:
    features = noise(4, 3, 4, 5).to(dtype)
    assert torch.equal(efdmix(features, torch.tensor([2, 3, 1, 0]), ones(4)), features)


@pytest.mark.parametrize("dtype", DTYPES)
def test_efdmix_without_a_share_of_ones_own_is_efdm_to_the_partner(dtype: torch.dtype) -> None:
    features, partners = noise(4, 3, 4, 5).to(dtype), torch.tensor([2, 3, 1, 0])
    assert torch.equal(efdmix(features, partners, torch.zeros(4)), efdm(features, features[partners]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_efdmix_gives_1_to_the_content_and_the_lent_share_to_the_partner(
    dtype: torch.dtype, layout: torch.memory_format
) -> None:
    features = torch.tensor([[[[3, 1], [2, 0]]], [[[10, 20], [40, 30]]]]).to(dtype).contiguous(memory_format=layout)
    weight = torch.tensor([[[[1, 2], [4, 8]]], [[[16, 32], [64, 128]]]]).to(dtype)
    leaf = features.requires_grad_()
    (efdmix(leaf, torch.tensor([1, 1]), torch.tensor([0.5, 0.5])) * weight).sum().backward()
    # sample 0 borrows its ranks 3, 1, 2, 0 at weights 1, 2, 4, 8; sample 1 borrows from itself
    lent = torch.tensor([8, 2, 1, 4]) * 0.5 + torch.tensor([16, 32, 64, 128]) * 0.5
    assert leaf.grad[0].flatten().tolist() == [1, 2, 4, 8]
    assert leaf.grad[1].flatten().tolist() == [16 + lent[0], 32 + lent[1], 64 + lent[2], 128 + lent[3]]


# CrossNorm


@given(shape=SHAPES, dtype=st.sampled_from(DTYPES), scale=st.sampled_from([1e-4, 1.0, 1e3]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_crossnorm_is_the_plain_formula(shape: tuple[int, ...], dtype: torch.dtype, scale: float, seed: int) -> None:
    features, partners = (noise(*shape, seed=seed) * scale).to(dtype), partners_of(shape[0], seed)
    own = plain_statistics(features)
    new = tuple([statistic[partner] for partner in partners.tolist()] for statistic in own)
    expected = plain_restyle(features, own, (new[0], new[1]))
    exchanged = crossnorm(features, partners).double()
    torch.testing.assert_close(exchanged, expected, rtol=rough(dtype), atol=rough(dtype) * scale)


def test_crops_get_the_style_of_the_partners_crops() -> None:
    features, partners = noise(3, 2, 4, 5), [1, 2, 0]
    lent = plain_statistics(features[:, :, 0:4, 2:5])
    new = tuple([statistic[partner] for partner in partners] for statistic in lent)
    expected = features.clone()
    content = features[:, :, 1:3, 0:2]
    expected[:, :, 1:3, 0:2] = plain_restyle(content, plain_statistics(content), (new[0], new[1]))
    torch.testing.assert_close(crossnorm(features, torch.tensor(partners), BOX, OTHER_BOX), expected)


def test_what_is_outside_the_content_crop_stays_as_it_is() -> None:
    features = noise(3, 2, 4, 5)
    changed = crossnorm(features, torch.tensor([1, 2, 0]), content_box=BOX) != features
    expected = torch.zeros(3, 2, 4, 5, dtype=torch.bool)
    expected[:, :, 1:3, 0:2] = True
    assert torch.equal(changed, expected)


@pytest.mark.parametrize(("content_box", "style_box"), [(None, None), (BOX, None), (None, OTHER_BOX), (BOX, OTHER_BOX)])
def test_crossnorm_has_exact_derivatives(content_box: object, style_box: object) -> None:
    leaf = noise(2, 1, 4, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda maps: crossnorm(maps, torch.tensor([1, 0]), content_box, style_box), leaf)


# traced


def test_a_compiled_module_with_efdmix_gives_the_same_numbers_and_gradients(plain_python: Callable[[str], str]) -> None:
    plain_python("""
import torch
from styleshift.style.mixing import efdmix, mixstyle

class Mixing(torch.nn.Module):
    def forward(self, maps, partners, own_share):
        return efdmix(maps, partners, own_share) + mixstyle(maps, partners, own_share)

draws = torch.tensor([2, 0, 1]), torch.tensor([0.1, 0.5, 0.9])
compiled = torch.compile(Mixing(), backend="aot_eager", fullgraph=True)
for layout in (torch.contiguous_format, torch.channels_last):
    maps, weight = torch.randn(2, 3, 2, 4, 5)
    eager, traced = (maps.contiguous(memory_format=layout).requires_grad_() for _ in range(2))
    expected, given = Mixing()(eager, *draws), compiled(traced, *draws)
    torch.testing.assert_close(given, expected)
    (expected * weight).sum().backward()
    (given * weight).sum().backward()
    torch.testing.assert_close(traced.grad, eager.grad)
""")
