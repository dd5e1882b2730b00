"""CrossNorm: samples exchange means and deviations, of whole maps or of crops."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from styleshift.layers.crossnorm import Crop, CrossNorm
from styleshift.style.draws import Draws
from styleshift.style.mixing import Box

WHOLE: Box = (slice(None), slice(None))


def maps(*shape: int, seed: int = 0) -> Tensor:
    """Features whose samples differ in mean and deviation."""
    generator = torch.Generator().manual_seed(seed)
    looks = torch.rand(2, *shape[:2], 1, 1, generator=generator, dtype=torch.float64)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * (0.5 + 3 * looks[0]) + 4 * looks[1]


def layer_with(seed: int = 0, crop: Crop = "neither") -> CrossNorm:
    return CrossNorm(p=1.0, crop=crop, generator=torch.Generator().manual_seed(seed)).train()


def partners_drawn(seed: int, count: int) -> list[int]:
    """The partners that a layer with this seed draws, after its coin."""
    draws = Draws(torch.Generator().manual_seed(seed))
    draws.coin(1.0)
    return draws.permutation(count).tolist()


def plainly_exchanged(features: Tensor, partners: list[int], content: Box = WHOLE, style: Box = WHOLE) -> Tensor:
    """CrossNorm letter by letter: the content's box with the statistics of the partner's style box."""
    exchanged = features.clone()
    for sample, partner in enumerate(partners):
        for channel in range(features.shape[1]):
            values, lent = features[sample, channel][content], features[partner, channel][style]
            std, lent_std = ((part.var(correction=0) + 1e-6).sqrt() for part in (values, lent))
            exchanged[sample, channel][content] = (values - values.mean()) / std * lent_std + lent.mean()
    return exchanged


def spans(length: int) -> list[slice]:
    return [slice(start, stop) for start in range(length) for stop in range(start + 1, length + 1)]


def large_boxes(height: int, width: int) -> Iterator[Box]:
    """Every box that covers at least a tenth of the map."""
    for rows, columns in product(spans(height), spans(width)):
        if (rows.stop - rows.start) * (columns.stop - columns.start) >= height * width / 10:
            yield rows, columns


def changed_places(features: Tensor, seed: int) -> Tensor:
    """Where a layer that crops the content changes any sample, `[H, W]`."""
    return (layer_with(seed, "content")(features) != features).flatten(0, 1).any(dim=0)


def box_around(places: Tensor) -> Box:
    rows, columns = places.any(dim=1).nonzero(), places.any(dim=0).nonzero()
    return slice(int(rows.min()), int(rows.max()) + 1), slice(int(columns.min()), int(columns.max()) + 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [6, 7])
def test_it_is_the_plain_formula_with_its_permutation(seed: int, count: int) -> None:
    features = maps(count, 3, 4, 5, seed=seed)
    torch.testing.assert_close(layer_with(seed)(features), plainly_exchanged(features, partners_drawn(seed, count)))


@pytest.mark.parametrize("seed", range(5))
def test_with_a_crop_of_the_content_only_one_box_takes_the_partners_style(seed: int) -> None:
    features = maps(6, 3, 8, 9, seed=seed)
    box = box_around(changed_places(features, seed))
    expected = plainly_exchanged(features, partners_drawn(seed, 6), content=box)
    torch.testing.assert_close(layer_with(seed, "content")(features), expected)


def lending_boxes(features: Tensor, seed: int, crop: Crop, content: Box = WHOLE) -> list[Box]:
    """The boxes whose style, lent by the partners, gives what the layer gives."""
    given, partners = layer_with(seed, crop)(features), partners_drawn(seed, len(features))
    _, _, height, width = features.shape
    return [
        box
        for box in large_boxes(height, width)
        if torch.allclose(given, plainly_exchanged(features, partners, content=content, style=box))
    ]


def test_with_a_crop_of_the_style_one_box_of_the_partner_lends_it() -> None:
    features = maps(3, 1, 4, 5)
    found = [lending_boxes(features, seed, "style") for seed in range(8)]
    assert [len(boxes) for boxes in found] == [1] * 8
    assert len({str(box) for (box,) in found}) > 4


def test_with_both_crops_a_box_takes_the_style_of_another_box() -> None:
    features = maps(3, 1, 4, 5)
    for seed in (0, 1, 2):
        content = box_around((layer_with(seed, "both")(features) != features).flatten(0, 1).any(dim=0))
        lenders = lending_boxes(features, seed, "both", content)
        assert len(lenders) == 1
        assert content not in lenders


def test_a_pasted_crop_leaves_the_rest_to_the_last_bit() -> None:
    features = maps(6, 3, 8, 9)
    changed = [changed_places(features, seed) for seed in range(50)]
    assert all(places[box_around(places)].all() for places in changed)
    assert sum(bool(places.all()) for places in changed) < 15


@pytest.mark.parametrize(("height", "width"), [(8, 9), (3, 2), (1, 7), (20, 10)])
def test_a_crop_covers_at_least_a_tenth_of_the_map(height: int, width: int) -> None:
    features = maps(4, 1, height, width)
    areas = [int(changed_places(features, seed).sum()) for seed in range(100)]
    assert min(areas) >= height * width / 10


def test_crops_are_of_all_sizes_at_all_places() -> None:
    features = maps(6, 1, 20, 20)
    found = torch.stack([changed_places(features, seed) for seed in range(200)])
    areas = found.flatten(1).double().mean(dim=1)
    assert areas.min() < 0.15
    assert areas.max() > 0.85
    assert areas.mean().item() == pytest.approx(0.57, abs=0.05)
    assert (~found).any(dim=0).all()
    assert found.any(dim=0).all()


def test_a_crop_has_the_maps_proportions() -> None:
    features = maps(6, 1, 10, 20)
    for seed in range(50):
        rows, columns = box_around(changed_places(features, seed))
        assert (rows.stop - rows.start) / 10 == pytest.approx((columns.stop - columns.start) / 20, abs=0.1)


@pytest.mark.parametrize("crop", ["neither", "style", "content", "both"])
def test_a_map_of_one_place_takes_its_partners_value(crop: Crop) -> None:
    features = maps(6, 3, 1, 1)
    torch.testing.assert_close(layer_with(2, crop)(features), features[partners_drawn(2, 6)])


def test_a_batch_of_one_keeps_its_style_of_whole_maps() -> None:
    features = maps(1, 3, 4, 5)
    torch.testing.assert_close(layer_with()(features), features)


@pytest.mark.parametrize("crop", ["neither", "style", "content", "both"])
def test_nothing_is_held_constant_in_its_gradient(crop: Crop) -> None:
    features = maps(3, 2, 3, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer_with(3, crop)(x), (features,))


@pytest.mark.parametrize("crop", ["content", "both"])
def test_the_features_it_was_given_stay_as_they_were(crop: Crop) -> None:
    features = maps(6, 3, 8, 9)
    before = features.clone()
    layer_with(0, crop)(features)
    assert torch.equal(features, before)


def test_left_alone_it_exchanges_the_styles_of_whole_maps() -> None:
    layer = CrossNorm()
    assert (layer.p, layer.crop) == (0.5, "neither")


def test_one_map_without_its_batch_is_refused(plain_python: Callable[[str], str]) -> None:
    assert "floating point [B, C, H, W]" in plain_python("""
import torch
from styleshift import CrossNorm
try:
    CrossNorm(1.0)(torch.ones(3, 4, 4))
except ValueError as error:
    print(error)
""")


def test_it_says_what_it_is() -> None:
    assert repr(CrossNorm(0.2, crop="both")) == "CrossNorm(p=0.2, crop='both')"
