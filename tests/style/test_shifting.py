"""Test-time style shifting: Eqs. 7-8 and Algorithm 2, its boundaries and its variants."""

import json
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.shifting import (
    Variant,
    are_far,
    expect_alpha,
    far_score,
    gaps,
    shift,
    shifted_as,
    spread,
    target_style,
)
from styleshift.style.statistics import Style, style_of

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LAYOUTS = [torch.contiguous_format, torch.channels_last]
BITS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def styles(count: int, channels: int, seed: int = 0) -> Style:
    return Style(noise(count, channels, seed=seed), noise(count, channels, seed=seed + 1).abs() + 0.5)


def same_bits(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.contiguous().view(BITS[one.dtype]), other.contiguous().view(BITS[other.dtype]))


def at(*means: float) -> Tensor:
    """One sample for each mean, of the values mean - 1 and mean + 1: its deviation is 1 (and a hair)."""
    means_of = torch.tensor(means, dtype=torch.float64)[:, None, None, None]
    return means_of + torch.tensor([-1.0, 1.0], dtype=torch.float64)


def sources_at(*means: float) -> Style:
    """Sources with these means and exactly the deviation of the samples of `at`."""
    deviation = style_of(at(0)).std
    return Style(torch.tensor(means, dtype=torch.float64)[:, None], deviation.expand(len(means), 1))


def plain_shift(
    features: Tensor, sources: Style, alpha: float, everything: bool = False
) -> tuple[Tensor, list[float], list[int]]:
    """Algorithm 2, letter by letter; also every sample's score and nearest source."""
    centres = [mean + std for mean, std in zip(sources.mean.tolist(), sources.std.tolist(), strict=True)]
    middle = [sum(column) / len(centres) for column in zip(*centres, strict=True)]
    own_spread = sum(math.dist(middle, centre) for centre in centres) / len(centres)
    shifted, scores, nearest = [], [], []
    for sample in features.double().flatten(2).tolist():
        mu = [sum(channel) / len(channel) for channel in sample]
        sigma = [
            math.sqrt(sum((x - m) ** 2 for x in channel) / len(channel) + 1e-6)
            for channel, m in zip(sample, mu, strict=True)
        ]
        distances = [math.dist(mu + sigma, centre) for centre in centres]
        gap = sum(distances) / len(distances)
        nearest.append(min(range(len(centres)), key=distances.__getitem__))
        scores.append(gap / own_spread if len(centres) > 1 and own_spread > 0 else math.inf)
        if everything or scores[-1] > alpha:
            new = centres[nearest[-1]]
            new_mu, new_sigma = new[: len(mu)], new[len(mu) :]
        else:
            new_mu, new_sigma = mu, sigma
        shifted.append(
            [[new_sigma[c] * (x - mu[c]) / sigma[c] + new_mu[c] for x in channel] for c, channel in enumerate(sample)]
        )
    return torch.tensor(shifted, dtype=torch.float64).view(features.shape), scores, nearest


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)),
    count=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 1.0, 1.5, 3.0]),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    scale=st.sampled_from([1e-4, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=100)
def test_the_shift_is_that_of_algorithm_2(
    shape: tuple[int, ...],
    count: int,
    alpha: float,
    dtype: torch.dtype,
    layout: torch.memory_format,
    scale: float,
    seed: int,
) -> None:
    features = (noise(*shape, seed=seed) * scale).to(dtype).contiguous(memory_format=layout)
    sources = styles(count, shape[1], seed)
    shifted = shift(features, sources, alpha)
    expected, _, _ = plain_shift(features, sources, alpha)
    rough = 1e-9 if dtype == torch.float64 else max(2e-5, 2 * torch.finfo(dtype).eps)
    torch.testing.assert_close(shifted.double(), expected, rtol=rough, atol=rough * max(scale, 4))
    assert shifted.dtype == dtype
    assert shifted.is_contiguous(memory_format=layout)


@given(count=st.integers(1, 4), seed=st.integers(0, 99), dtype=st.sampled_from([torch.float64, torch.float32]))
@settings(deadline=None, max_examples=50)
def test_the_score_is_the_left_side_of_eq_7_over_the_spread(count: int, seed: int, dtype: torch.dtype) -> None:
    features, sources = noise(3, 2, 4, 4, seed=seed).to(dtype), styles(count, 2, seed)
    _, expected, _ = plain_shift(features, sources, 3.0)
    torch.testing.assert_close(far_score(features, sources).tolist(), expected, rtol=1e-4, atol=0)


# by hand: sources with means 0 and 8, so the spread is 4


def test_by_hand_the_gaps_are_the_distances_of_the_means() -> None:
    sources, samples = sources_at(0, 8), style_of(at(4, 20))
    assert gaps(samples.phi, sources.phi).tolist() == [[4, 4], [20, 12]]


def test_by_hand_the_spread_is_the_mean_distance_to_the_middle() -> None:
    assert spread(sources_at(0, 8).phi).item() == 4


def test_by_hand_the_scores_are_1_between_the_sources_and_4_at_20() -> None:
    assert far_score(at(4, 7, 20), sources_at(0, 8)).tolist() == [1, 1, 4]


def test_a_score_equal_to_alpha_is_not_far() -> None:
    features = at(4, 20)
    assert same_bits(shift(features, sources_at(0, 8), alpha=4.0), features)


def test_a_score_just_above_alpha_is_far() -> None:
    features = at(4, 20)
    shifted = shift(features, sources_at(0, 8), alpha=math.nextafter(4.0, 0.0))
    assert torch.equal(shifted[0], features[0])
    torch.testing.assert_close(shifted[1], at(8)[0])


def test_without_an_alpha_the_papers_3_is_taken() -> None:
    torch.testing.assert_close(shift(at(15.9, 16.1), sources_at(0, 8)), at(15.9, 8))


def test_alpha_0_shifts_every_sample_also_one_between_the_sources() -> None:
    torch.testing.assert_close(shift(at(3, 5), sources_at(0, 8), alpha=0.0), at(0, 8))


def test_of_equally_near_sources_the_first_is_taken() -> None:
    torch.testing.assert_close(shift(at(4), sources_at(8, 0), alpha=0.0), at(8))


def test_an_infinite_alpha_shifts_nothing() -> None:
    features = at(1e6)
    assert same_bits(shift(features, sources_at(0, 8), alpha=math.inf), features)


@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_with_one_source_every_sample_is_far_also_one_with_gap_0(mean: float) -> None:
    assert far_score(at(mean), sources_at(0)).tolist() == [math.inf]
    torch.testing.assert_close(shift(at(mean), sources_at(0), alpha=1e9), at(0))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_with_equal_sources_the_spread_is_0_and_every_sample_is_far(value: float, dtype: torch.dtype) -> None:
    equal = Style(torch.full((3, 2), value, dtype=dtype), torch.full((3, 2), value, dtype=dtype))
    assert spread(equal.phi).item() == 0
    assert far_score(noise(4, 2, 3, 3).to(dtype), equal).tolist() == [math.inf] * 4


@given(count=st.integers(2, 5), seed=st.integers(0, 999), scale=st.sampled_from([0.01, 1.0, 100.0]))
@settings(deadline=None, max_examples=50)
def test_no_score_is_below_one_half(count: int, seed: int, scale: float) -> None:
    # the mean gap is at least the gap to the middle, and the spread at most their sum
    features = noise(4, 3, 4, 4, seed=seed) * scale
    assert (far_score(features, styles(count, 3, seed)) >= 0.5 - 1e-9).all()


# laws


@given(seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_the_order_of_the_sources_does_not_matter(seed: int) -> None:
    features, sources = noise(4, 3, 4, 4, seed=seed), styles(3, 3, seed)
    order = torch.randperm(3, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(shift(features, sources.rows(order), 1.2), shift(features, sources, 1.2))


def test_a_sample_is_shifted_alone_as_in_a_batch() -> None:
    features, sources = noise(6, 3, 4, 4), styles(3, 3)
    together = shift(features, sources, 1.2)
    torch.testing.assert_close(torch.cat([shift(sample[None], sources, 1.2) for sample in features]), together)


def test_what_was_shifted_has_a_source_as_its_style() -> None:
    features, sources = noise(4, 3, 8, 8), styles(3, 3)
    _, _, nearest = plain_shift(features, sources, 0.0)
    shifted = style_of(shift(features, sources, 0.0))
    torch.testing.assert_close(shifted.phi, sources.phi[nearest], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_unshifted_sample_stays_to_the_last_bit(dtype: torch.dtype, layout: torch.memory_format) -> None:
    features = noise(3, 2, 4, 4).to(dtype).contiguous(memory_format=layout)
    features[0, 0, 0] = torch.tensor([-0.0, 0.0, torch.finfo(dtype).tiny, -torch.finfo(dtype).tiny / 4])
    features[1] += 100
    sources = Style(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.ones(2, 2))
    shifted = shift(features, sources, alpha=3.0)
    assert same_bits(shifted[[0, 2]], features[[0, 2]])
    assert not torch.equal(shifted[1], features[1])


def test_unshifted_large_maps_stay_to_the_last_bit() -> None:
    features = noise(5, 16, 256, 256).float()
    assert same_bits(shift(features, Style(torch.eye(3, 16), torch.ones(3, 16)), alpha=1e6), features)


def test_the_features_given_are_not_changed() -> None:
    features = noise(3, 2, 4, 4)
    before = features.clone()
    shift(features, styles(2, 2), 0.0)
    assert torch.equal(features, before)


# degenerate input


def test_a_constant_channel_becomes_exactly_the_sources_mean() -> None:
    features = torch.full((1, 2, 13, 17), 0.1)
    sources = Style(torch.tensor([[2.3, -0.7]]), torch.tensor([[1.1, 0.9]]))
    assert (shift(features, sources)[0] == sources.mean[0, :, None, None]).all()


def test_1x1_maps_become_the_sources_mean() -> None:
    sources = styles(2, 3)
    shifted = shift(noise(4, 3, 1, 1) + 50, sources, 0.0)
    assert all(any(torch.equal(sample.flatten(), mean) for mean in sources.mean) for sample in shifted)


@pytest.mark.parametrize("count", [1, 3])
def test_an_empty_batch_stays_empty(count: int) -> None:
    assert shift(torch.zeros(0, 2, 4, 4), styles(count, 2)).shape == (0, 2, 4, 4)
    assert far_score(torch.zeros(0, 2, 4, 4), styles(count, 2)).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("alpha", [0.0, 1e6])
def test_half_precision_of_a_thousand_stays_finite(dtype: torch.dtype, alpha: float) -> None:
    features = (noise(2, 3, 56, 56) * 1e3).to(dtype)
    assert shift(features, styles(3, 3), alpha).isfinite().all()


@pytest.mark.parametrize("scale", [1e-30, 1e15, 1e30])
def test_huge_and_tiny_features_are_shifted_to_finite_ones(scale: float) -> None:
    features = (noise(2, 3, 8, 8) * scale).float()
    assert shift(features, styles(3, 3), 0.0).isfinite().all()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_sample_that_is_no_number_stays_as_it_is_and_spoils_no_other(value: float) -> None:
    features, sources = noise(3, 2, 4, 4), styles(3, 2)
    expected = shift(features, sources, 0.0)
    features[1, 0, 0, 0] = value
    shifted = shift(features, sources, 0.0)
    assert same_bits(shifted[1], features[1])
    assert torch.equal(shifted[[0, 2]], expected[[0, 2]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sources_of_another_precision_are_taken_as_they_come(dtype: torch.dtype) -> None:
    features, sources = noise(3, 2, 4, 4).float(), styles(3, 2)
    given = Style(sources.mean.to(dtype), sources.std.to(dtype))
    expected = shift(features, Style(given.mean.float(), given.std.float()), 0.0)
    torch.testing.assert_close(shift(features, given, 0.0), expected)


# derivatives


@pytest.mark.parametrize("alpha", [0.0, 1.2, 1e6])
def test_the_shift_has_exact_first_and_second_derivatives(alpha: float) -> None:
    sources = styles(3, 2)

    def shifted(features: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return shift(features, Style(mean, std), alpha)

    inputs = [tensor.clone().requires_grad_() for tensor in (noise(2, 2, 3, 2), sources.mean, sources.std)]
    assert torch.autograd.gradcheck(shifted, inputs)
    assert torch.autograd.gradgradcheck(shifted, inputs)


def test_the_gradient_to_an_unshifted_sample_is_1() -> None:
    features = noise(2, 2, 3, 3).requires_grad_()
    shift(features, styles(3, 2), 1e6).sum().backward()
    assert features.grad is not None
    assert (features.grad == 1).all()


# variants


def test_all_shifts_near_samples_too() -> None:
    features, sources = noise(4, 2, 3, 3), styles(3, 2)
    expected, _, _ = plain_shift(features, sources, 1e6, everything=True)
    torch.testing.assert_close(shifted_as(Variant.named("all"), features, sources, 1e6), expected)


def test_ts_is_the_shift_itself() -> None:
    features, sources = noise(4, 2, 3, 3), styles(3, 2)
    assert torch.equal(shifted_as(Variant.named("ts"), features, sources, 1.2), shift(features, sources, 1.2))


def test_sampled_shifts_to_the_nearest_sample_what_is_far_from_the_sources() -> None:
    sampled = Variant.named("sampled")
    shifted = shifted_as(sampled, at(4, 20), sources_at(0, 8), 3.0, samples=sources_at(3, 21, 30))
    torch.testing.assert_close(shifted, at(4, 21))


def test_sampled_needs_samples() -> None:
    with pytest.raises(ValueError, match="`samples` is missing"):
        shifted_as(Variant.named("sampled"), at(20), sources_at(0, 8), 3.0)


def test_partial_goes_its_fraction_of_the_way() -> None:
    partial = Variant.named("partial=0.75")
    torch.testing.assert_close(shifted_as(partial, at(4, 20), sources_at(0, 8), 3.0), at(4, 11))


def test_soft_goes_to_the_mixture_of_the_sources() -> None:
    shifted = shifted_as(Variant.named("soft=0.5"), at(5), sources_at(0, 8), 0.0)
    weight = 1 / (1 + math.exp((3 - 5) / (0.5 * 4)))  # of the source at 8, 3 away, against the one at 0, 5 away
    torch.testing.assert_close(shifted, at(8 * weight))


def test_soft_at_no_temperature_is_the_nearest() -> None:
    features, sources = noise(4, 2, 3, 3), styles(3, 2)
    cold = shifted_as(Variant(to="soft", temperature=1e-6), features, sources, 0.0)
    torch.testing.assert_close(cold, shift(features, sources, 0.0))


@pytest.mark.parametrize("count", [1, 3])
def test_soft_among_equal_sources_is_any_of_them(count: int) -> None:
    sources = Style(torch.full((count, 2), 5.0), torch.full((count, 2), 2.0))
    target = style_of(shifted_as(Variant.named("soft"), noise(3, 2, 8, 8).float(), sources, 0.0))
    torch.testing.assert_close(target.phi, sources.phi[:1].expand(3, 4), rtol=1e-4, atol=1e-4)


def test_soft_keeps_its_precision_under_autocast() -> None:
    features, sources = noise(4, 2, 3, 3).float(), styles(3, 2)
    soft = Variant.named("soft")
    expected = shifted_as(soft, features, sources, 0.0)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(shifted_as(soft, features, sources, 0.0), expected, rtol=1e-5, atol=1e-5)


def test_the_steps_that_others_build_on_agree_with_the_whole() -> None:
    features, sources = noise(6, 2, 3, 3), styles(3, 2)
    own = style_of(features)
    distances = gaps(own.phi, sources.phi)
    far = are_far(distances, sources.phi, 1.2)
    target = target_style(Variant(), own, distances, sources.phi)
    assert torch.equal(far, far_score(features, sources) > 1.2)
    expected = torch.where(far[:, None], target.phi, own.phi)
    torch.testing.assert_close(style_of(shift(features, sources, 1.2)).phi, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("ts", Variant()),
        ("all", Variant(everything=True)),
        ("sampled", Variant(to="sampled", samples=100)),
        ("sampled=50", Variant(to="sampled", samples=50)),
        ("soft", Variant(to="soft")),
        ("soft=0.5", Variant(to="soft", temperature=0.5)),
        ("partial", Variant(fraction=0.8)),
        ("partial=0.5", Variant(fraction=0.5)),
        ("partial=1", Variant(fraction=1.0)),
    ],
)
def test_a_variant_is_found_by_its_name(name: str, variant: Variant) -> None:
    assert Variant.named(name) == variant
    assert Variant.named(variant) is variant


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nearest", "got 'nearest'"),
        ("ts=3", "got 'ts=3'"),
        ("all=2", "got 'all=2'"),
        ("partial=", "fraction is a number"),
        ("partial=much", "fraction is a number"),
        ("partial=0", "in (0, 1]"),
        ("partial=1.01", "in (0, 1]"),
        ("partial=nan", "in (0, 1]"),
        ("sampled=0", "at least 1"),
        ("sampled=2.5", "samples is a number (int)"),
        ("soft=0", "above 0"),
        ("soft=nan", "above 0"),
        ("soft=inf", "above 0"),
    ],
)
def test_a_variant_there_is_not_is_refused(name: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Variant.named(name)
    assert said in str(refused.value)


# what is refused


@pytest.mark.parametrize("alpha", [-1e-9, math.nan])
def test_an_alpha_below_0_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=f"at least 0 .* got {alpha}"):
        expect_alpha(alpha)
    with pytest.raises(ValueError, match=f"at least 0 .* got {alpha}"):
        shift(at(0), sources_at(0, 8), alpha)


def test_sources_of_other_channels_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"\[N, 2\] for features of 2 channels; got mean \[3, 5\]"):
        shift(noise(1, 2, 3, 3), styles(3, 5))


def test_no_source_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one source domain"):
        far_score(noise(1, 2, 3, 3), styles(0, 2))


def test_what_is_no_feature_map_is_refused_with_its_shape(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import json
import torch
from styleshift.style.shifting import far_score, shift
from styleshift.style.statistics import Style

flat, said = Style(torch.zeros(3), torch.ones(3)), []
sources = Style(torch.zeros(2, 3), torch.ones(2, 3))
for call in (
    lambda: shift(torch.zeros(3, 4, 5), sources),
    lambda: far_score(torch.zeros(2, 7, 3), sources),
    lambda: shift(torch.zeros(2, 3, 4, 4, dtype=torch.int64), sources),
    lambda: shift(torch.zeros(2, 3, 4, 4), flat),
    lambda: shift(torch.zeros(2, 3, 4, 4), Style(sources.mean, flat.std)),
):
    try:
        call()
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
""")
    expected = ["[3, 4, 5]", "[2, 7, 3]", "torch.int64", "got mean [3]", "std [3]"]
    for shape, message in zip(expected, json.loads(said), strict=True):
        assert shape in message
