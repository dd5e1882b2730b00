"""The threshold of alpha="auto", and which images find it."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from styleshift.calibrating import (
    Calibration,
    Metric,
    Reading,
    Tried,
    Wish,
    as_names,
    assembled,
    at_of,
    calibrated,
    everybody,
    expect_agreement,
    gate_of,
    nobody,
    one_in_ten,
    shifting,
    threshold,
    without_sample,
)
from styleshift.hashing import image_keys
from styleshift.sources import sources_of
from styleshift.style.shifting import Variant, far_score
from styleshift.style.statistics import style_of

Batch = tuple[Tensor, Tensor, list[str]]
SHARES = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.29, 0.3, 1 / 3, 0.5, 0.7, 0.95])
# few different values: so that many are tied
SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.1, 2.0, 3.7]) | st.floats(0, 50, width=32), min_size=1, max_size=80)


def best_share(scores: list[float], share: float) -> float:
    """By trying every threshold there can be: the largest share above one that is no larger than `share`."""
    shares = [sum(score > alpha for score in scores) / len(scores) for alpha in [-1.0, *scores]]
    return max(found for found in shares if found <= share)


@settings(deadline=None, max_examples=60)
@given(SCORES, SHARES)
def test_as_large_a_share_as_can_be_is_above_it_and_no_larger(scores: list[float], share: float) -> None:
    if len(scores) < math.ceil(1 / share):
        return
    scores = torch.tensor(scores).tolist()  # in float32, where two of them may be one
    alpha = threshold(torch.tensor(scores), share)
    assert sum(score > alpha for score in scores) / len(scores) == best_share(scores, share)


@settings(deadline=None, max_examples=60)
@given(SCORES, SHARES, st.randoms())
def test_the_scores_order_does_not_matter(scores: list[float], share: float, random: object) -> None:
    if len(scores) < math.ceil(1 / share):
        return
    shuffled = sorted(scores, key=lambda _: random.random())  # type: ignore[attr-defined]  # random.Random
    assert threshold(torch.tensor(scores), share) == threshold(torch.tensor(shuffled), share)


def test_of_a_hundred_scores_it_is_between_the_fifth_and_the_sixth_largest() -> None:
    assert threshold(torch.arange(1.0, 101.0), 0.05) == 95.5


def test_tied_scores_stay_below_together() -> None:
    scores = torch.tensor([1.0] * 15 + [2.0] * 5)
    assert threshold(scores, 0.2) == 2.0  # four may be above; five are tied, so none is
    assert threshold(scores, 0.25) == 1.5


def test_equal_scores_are_all_below() -> None:
    assert threshold(torch.full((40,), 3.0), 0.05) == 3.0


def test_neighbouring_scores_are_told_apart() -> None:
    high = torch.nextafter(torch.tensor(3.0), torch.tensor(4.0))
    scores = torch.cat([torch.full((19,), 3.0), high[None]])
    assert (scores > threshold(scores, 0.05)).tolist() == [False] * 19 + [True]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.34, 0.5, 0.99])
def test_one_image_fewer_than_can_show_the_share_is_too_few(share: float) -> None:
    needed = math.ceil(1 / share)
    threshold(torch.arange(float(needed)), share)
    with pytest.raises(ValueError, match=rf"at least {needed} held-out images; there are {needed - 1}\. Give more"):
        threshold(torch.arange(float(needed - 1)), share)


def test_infinite_scores_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="at least two sources of different style"):
        threshold(torch.full((40,), math.inf), 0.05)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 5.0, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"false_shift is the share .* between 0 and 1"):
        Wish(false_shift=share)


def test_a_holdout_without_auto_is_refused() -> None:
    with pytest.raises(ValueError, match=r"holdout= serves .* got alpha=3\.0"):
        Wish(alpha=3.0, holdout=[])


# --- what fit is asked for


@pytest.mark.parametrize(
    ("at", "names"),
    [("layer1", ("layer1",)), (["layer1"], ("layer1",)), (("a", "b"), ("a", "b")), (["b", "a"], ("b", "a")), ((), ())],
)
def test_one_name_or_several_are_names(at: str | Sequence[str], names: tuple[str, ...]) -> None:
    assert as_names(at) == names


@pytest.mark.parametrize("at", [(), [], "", ("a", "a"), ("a", "b", "a")])
def test_no_layer_and_the_same_layer_twice_are_refused(at: str | Sequence[str]) -> None:
    with pytest.raises(ValueError, match=r"at names one layer, or several different ones in the order .*; got "):
        expect_agreement(at, 3.0, None, Variant())


@pytest.mark.parametrize("at", [None, "a", "auto", ("a",), ["a", "b", "c"]])
def test_one_layer_several_and_none_yet_agree(at: str | Sequence[str] | None) -> None:
    expect_agreement(at, "auto", None, Variant())


# --- who is held out


KEYS = torch.randint(-(2**63), 2**63 - 1, (20_000,), generator=torch.Generator().manual_seed(0))


def test_one_in_ten_holds_out_a_tenth() -> None:
    assert 0.09 < float(one_in_ten(KEYS).double().mean()) < 0.11


def test_it_is_the_images_own_lot() -> None:
    order = torch.randperm(len(KEYS), generator=torch.Generator().manual_seed(1))
    assert torch.equal(one_in_ten(KEYS)[order], one_in_ten(KEYS[order]))


def test_it_is_no_matter_of_how_small_a_hash_is() -> None:
    smallest = KEYS.sort().values[:5000]
    assert 0.08 < float(one_in_ten(smallest).double().mean()) < 0.12


def test_nobody_and_everybody_are_what_they_say() -> None:
    assert not nobody(KEYS).any()
    assert everybody(KEYS).all()


# --- styles and threshold


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def many() -> list[Batch]:
    """Three domains of 120 images each, in batches of 40."""
    looks = {"art": (0.5, 0.0), "cartoon": (1.5, 1.0), "photo": (1.0, -1.0)}
    return [
        (drawn(40, seed) * contrast + brightness, torch.arange(40) % 2, [name] * 40)
        for name, (contrast, brightness) in looks.items()
        for seed in (len(name), len(name) + 100, len(name) + 200)
    ]


@pytest.fixture
def reading(conv_net: nn.Module) -> Reading:
    return Reading(conv_net)


def rebatched(many: list[Batch], seed: int, size: int) -> list[tuple[Tensor, list[str]]]:
    images = torch.cat([some for some, _, _ in many])
    names = [name for _, _, some in many for name in some]
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    return [(images[rows], [names[row] for row in rows]) for rows in order.split(size)]


def test_every_image_is_in_a_centre_or_held_out(reading: Reading, many: list[Batch]) -> None:
    kept, held = reading.styles(many, ["block1"], one_in_ten)
    count = int(kept["block1"].counts.sum())
    assert count + len(held["block1"].sample) == 360
    assert 0 < len(held["block1"].sample) < 80


def test_centres_are_means_over_what_is_not_held_out(conv_net: nn.Module, reading: Reading, many: list[Batch]) -> None:
    kept, _ = reading.styles(many, ["block1"], one_in_ten)
    rest = [
        (images[~one_in_ten(image_keys(images))], names[: int((~one_in_ten(image_keys(images))).sum())])
        for images, _, names in many
    ]
    wanted = sources_of(conv_net, rest, "block1")
    torch.testing.assert_close(kept["block1"].mean, wanted.mean)
    assert kept["block1"].counts.tolist() == wanted.counts.tolist()


def test_neither_order_nor_batch_size_matters(reading: Reading, many: list[Batch]) -> None:
    one = calibrated(reading, many, Wish(), ["block1"], "stem")
    other = calibrated(reading, rebatched(many, 3, 17), Wish(), ["block1"], "stem")
    assert one.alpha == pytest.approx(other.alpha, rel=1e-5)
    assert one.calibration == other.calibration
    torch.testing.assert_close(one.sources.mean, other.sources.mean)


def test_the_share_on_what_was_held_out_is_the_one_it_says(
    conv_net: nn.Module, reading: Reading, many: list[Batch]
) -> None:
    apart = [drawn(50, 7), drawn(50, 8) * 1.4 + 1]
    found = calibrated(reading, many, Wish(holdout=apart, metric="euclidean"), ["block1"], "stem")
    assert found.gate is not None
    assert found.gate.whitening is None
    scores = far_score(conv_net.stem(torch.cat(apart)), found.gate.style)  # type: ignore[operator]
    assert found.calibration == Calibration(0.05, 0.05, 100, given=True)
    assert int((scores > found.alpha).sum()) == 5


@torch.no_grad()
def test_by_mahalanobis_the_threshold_is_between_the_fifth_and_the_sixth_score_by_hand(
    conv_net: nn.Module, reading: Reading, many: list[Batch], whitened_scores: Callable[..., list[float]]
) -> None:
    apart = [drawn(50, 7), drawn(50, 8) * 1.4 + 1]
    found = calibrated(reading, many, Wish(holdout=apart), ["block1"], "stem")

    def phi(images: Tensor) -> Tensor:
        maps = conv_net.stem(images).double()  # type: ignore[operator]
        return torch.cat([maps.mean(dim=(2, 3)), (maps.var(dim=(2, 3), correction=0) + 1e-6).sqrt()], dim=1)

    images = {name: [some for some, _, names in many if names[0] == name] for name in found.sources.domains}
    domains = [phi(torch.cat(some)) for some in images.values()]
    *_, sixth, fifth, _, _, _, _ = sorted(whitened_scores(domains, phi(torch.cat(apart))))
    assert found.alpha == pytest.approx((fifth + sixth) / 2, rel=1e-4)
    assert found.calibration == Calibration(0.05, 0.05, 100, given=True)


def test_with_a_holdout_all_batches_make_centres(conv_net: nn.Module, reading: Reading, many: list[Batch]) -> None:
    found = calibrated(reading, many, Wish(holdout=[drawn(50, 7)]), ["block1"])
    wanted = sources_of(conv_net, many, "block1")
    assert torch.equal(found.sources.mean, wanted.mean)
    assert torch.equal(found.sources.sample, wanted.sample)


def test_a_number_stays_that_number(conv_net: nn.Module, reading: Reading, many: list[Batch]) -> None:
    found = calibrated(reading, many, Wish(alpha=2.5), ["block1"], "stem")
    assert (found.alpha, found.calibration, at_of(found.gate)) == (2.5, None, "stem")
    assert found.gate is not None
    assert found.gate.whitening is None  # the number means what it means in the paper
    assert torch.equal(found.sources.mean, sources_of(conv_net, many, "block1").mean)


@pytest.mark.parametrize("gate_at", ["block1", None])
def test_a_gate_at_the_shifts_own_layer_is_no_gate_where_both_measure_alike(
    reading: Reading, many: list[Batch], gate_at: str | None
) -> None:
    assert calibrated(reading, many, Wish(metric="euclidean"), ["block1"], gate_at).gate is None
    assert calibrated(reading, many, Wish(alpha=2.0), ["block1"], gate_at).gate is None
    own = calibrated(reading, many, Wish(), ["block1"], gate_at)
    assert own.gate is not None
    assert (own.gate.at, own.gate.whitening is None) == ("block1", False)
    assert own.sources.whitening is None


@pytest.mark.parametrize("metric", ["mahalanobis", "euclidean"])
@pytest.mark.parametrize(("gate_at", "decides"), [("stem", "stem"), (None, "relu")])
def test_several_layers_are_measured_in_one_pass_and_the_first_decides_unless_another_is_named(
    conv_net: nn.Module, reading: Reading, many: list[Batch], metric: Metric, gate_at: str | None, decides: str
) -> None:
    wish = Wish(holdout=[drawn(50, 7)], metric=metric)
    found = calibrated(reading, iter(many), wish, ["relu", "block1"], gate_at, Variant(fraction=0.5))
    alone = calibrated(reading, many, wish, ["relu"], decides)
    assert (found.sources.at, [styles.at for styles in found.then]) == ("relu", ["block1"])
    assert found.variant == Variant(fraction=0.5)
    assert torch.equal(found.then[0].mean, sources_of(conv_net, many, "block1").mean)
    assert (found.alpha, found.calibration, at_of(found.gate)) == (alone.alpha, alone.calibration, at_of(alone.gate))


def test_several_layers_with_a_number_need_no_gate_of_their_own(reading: Reading, many: list[Batch]) -> None:
    found = calibrated(reading, many, Wish(alpha=2.5), ["stem", "block1"])
    assert (found.alpha, found.calibration, found.gate) == (2.5, None, None)
    assert [styles.at for styles in (found.sources, *found.then)] == ["stem", "block1"]
    assert len(found.then[0].sample) == 360  # "sampled" looks among them


@pytest.mark.parametrize(
    ("wish", "whitened"), [(Wish(), True), (Wish(metric="euclidean"), False), (Wish(alpha=3.0), False)]
)
def test_only_a_threshold_that_is_found_is_measured_by_mahalanobis(
    reading: Reading, many: list[Batch], wish: Wish, whitened: bool
) -> None:
    styles = sources_of(reading.model, many, "stem")
    assert (gate_of(styles, wish).whitening is not None) is whitened


def test_what_is_put_together_keeps_the_order_of_its_layers(reading: Reading, many: list[Batch]) -> None:
    styles = {layer: sources_of(reading.model, many[::4], layer) for layer in ("stem", "relu", "block1")}
    for decides, gate in (("stem", None), ("relu", "relu")):
        found = assembled(styles, ["stem", "block1", "relu"], styles[decides], 2.0, None, Variant())
        assert [found.sources.at, *(each.at for each in found.then)] == ["stem", "block1", "relu"]
        assert at_of(found.gate) == gate


def test_the_layer_that_shifts_has_samples_if_its_variant_looks_among_them(reading: Reading, many: list[Batch]) -> None:
    styles = sources_of(reading.model, many, "stem")
    assert shifting(styles, 2.0, Variant(), seed=1).samples is None
    layer = shifting(styles, 2.0, Variant.named("sampled=7"), seed=1)
    assert layer.samples is not None
    assert torch.equal(layer.samples.phi, styles.sampled_styles(7, seed=1).phi)
    assert torch.equal(layer.sources.phi, styles.style.phi)


def test_a_gate_keeps_its_centres_alone(reading: Reading, many: list[Batch]) -> None:
    gate = calibrated(reading, many, Wish(), ["block1"], "stem").gate
    assert gate is not None
    assert (len(gate.sample), gate.mean.shape) == (0, (3, 16))
    assert without_sample(None) is None


def test_clusters_have_a_threshold_of_their_own(reading: Reading, many: list[Batch]) -> None:
    found = calibrated(Reading(reading.model, labelled=False), many, Wish(clusters=4), ["block1"], "stem")
    assert found.gate is not None
    assert len(found.sources.domains) == len(found.gate.domains) == 4
    assert found.calibration is not None
    assert found.calibration.shifted <= 0.05


def test_one_source_has_no_threshold(reading: Reading, many: list[Batch]) -> None:
    with pytest.raises(ValueError, match="at least two sources of different style"):
        calibrated(reading, [(torch.cat([images for images, _, _ in many]), ["a"] * 360)], Wish(), ["block1"])


def test_few_images_are_too_few(reading: Reading, many: list[Batch]) -> None:
    with pytest.raises(ValueError, match="at least 20 held-out images; there are"):
        calibrated(reading, [many[0], many[3]], Wish(), ["block1"])


def test_a_domain_whose_images_are_all_held_out_is_said(reading: Reading, many: list[Batch]) -> None:
    images = many[0][0]
    held = images[one_in_ten(image_keys(images))][:1]
    with pytest.raises(ValueError, match=r"every image of domain 'rare' .* holdout="):
        calibrated(reading, [*many, (held, torch.zeros(1), ["rare"])], Wish(), ["block1"])


def test_an_empty_holdout_is_said(reading: Reading, many: list[Batch]) -> None:
    def nothing() -> Iterator[Tensor]:
        yield from ()

    with pytest.raises(ValueError, match="`holdout` gave nothing"):
        calibrated(reading, many, Wish(holdout=nothing()), ["block1"])


def test_no_image_at_all_is_said(reading: Reading) -> None:
    with pytest.raises(ValueError, match="`batches` gave nothing"):
        calibrated(reading, [], Wish(), ["block1"])


def test_an_image_that_is_no_number_is_said(reading: Reading, many: list[Batch]) -> None:
    broken = drawn(30, 9)
    broken[4, 0, 0, 0] = math.nan
    with pytest.raises(ValueError, match="1 of 30 images in batch 0"):
        calibrated(reading, many, Wish(holdout=[broken]), ["block1"])


def test_phi_is_measured_at_every_layer_in_one_pass(conv_net: nn.Module, reading: Reading, many: list[Batch]) -> None:
    kept, _ = reading.styles(iter(many), ["stem", "block1"], nobody)
    images = torch.cat([images for images, _, _ in many])
    stem = style_of(conv_net.stem(images)).phi.double()  # type: ignore[operator]
    torch.testing.assert_close(kept["stem"].mean.mean(dim=0), stem.mean(dim=0), rtol=1e-5, atol=1e-5)
    assert torch.equal(kept["block1"].mean, sources_of(conv_net, many, "block1").mean)


def test_a_calibration_comes_back_from_plain_values() -> None:
    tried = (Tried("stem", ("stem", "block1"), 0.5, 2.0, 0.5, 0.1, 0.01, {"edges": 0.1}),)
    calibration = Calibration(0.05, 0.04, 100, False, tried)
    assert Calibration.of(asdict(calibration)) == calibration
    assert Calibration.of(json.loads(json.dumps(asdict(calibration)))) == calibration


def test_a_calibration_of_one_layer_a_way_comes_back_from_plain_values() -> None:
    way = {"gate_at": "stem", "at": "block1", "alpha": 2.0, "shifted": 0.5, "recovered": 0.1, "looks": {"edges": 0.1}}
    found = Calibration.of({"false_shift": 0.05, "shifted": 0.04, "held_out": 100, "given": False, "tried": [way]})
    assert found.tried == (Tried("stem", ("block1",), 1.0, 2.0, 0.5, 0.1, 0.0, {"edges": 0.1}),)
