"""at="auto": layers from source data alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

import pytest
import torch
from torch import Tensor, nn

from styleshift import layer_choice
from styleshift.attaching import features_at, places
from styleshift.backbones.resnet import ResNet
from styleshift.calibrating import Metric, Reading, Tried, Wish, at_of
from styleshift.hashing import image_keys
from styleshift.layer_choice import HeldImages, Way, layers_to_try, ways_to_try, with_chosen_layers
from styleshift.strange_looks import LOOKS, strange_looks
from styleshift.style.shifting import Variant, far_score, shifted_as
from styleshift.style.statistics import Style

Batch = tuple[Tensor, Tensor, list[str]]
LAYERS = ["stem", "block1"]
# no shift can help a network that was never trained, which is as it should be said
pytestmark = pytest.mark.filterwarnings("ignore:shifting at no layer recovers")


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def batches() -> list[Batch]:
    looks = {"art": (0.5, 0.0), "cartoon": (1.5, 1.0), "photo": (1.0, -1.0)}
    return [
        (drawn(60, seed) * contrast + brightness, torch.arange(60) % 5, [name] * 60)
        for seed, (name, (contrast, brightness)) in enumerate(looks.items())
    ]


@pytest.fixture
def apart() -> list[Batch]:
    return [(drawn(20, 10 + seed), torch.arange(20) % 5, ["any"] * 20) for seed in range(2)]


@pytest.fixture
def reading(conv_net: nn.Module) -> Reading:
    # so that it says one class of some images and another of others
    head = conv_net.get_submodule("head")
    with torch.no_grad():
        head.weight.sub_(head.weight.mean(dim=0)).mul_(50)  # type: ignore[union-attr,operator]  # a linear layer
        head.bias.zero_()  # type: ignore[union-attr,operator]
    return Reading(conv_net)


NAMES = ["stem", "relu", "block1", "block2"]
Layer = Callable[[Tensor], Tensor]
Scoring = Callable[..., list[float]]


def run(model: nn.Module, image: Tensor, after: Mapping[str, Layer]) -> Tensor:
    """What the network says of an image, module by module, with something after some of them."""
    features = image
    for name in NAMES:
        features = model.get_submodule(name)(features.clone())
        features = after.get(name, lambda maps: maps)(features)
    return model.get_submodule("head")(features.mean(dim=(2, 3))).argmax(dim=1)


def phi(model: nn.Module, layer: str, images: Tensor) -> Tensor:
    maps = features_at(model, [layer], images)[layer]
    return torch.cat([maps.mean(dim=(2, 3)), (maps.var(dim=(2, 3), unbiased=False) + 1e-6).sqrt()], dim=1)


@torch.no_grad()
def by_hand(
    model: nn.Module, batches: list[Batch], apart: list[Batch], gate: str, way: Way, whitened: Scoring | None
) -> Tried:
    """One way tried, one look and one image at a time. whitened: gives Mahalanobis scores; None: Eq. 7's."""
    images, classes = torch.cat([some for some, _, _ in apart]), torch.cat([some for _, some, _ in apart])
    order = image_keys(images).sort().indices
    images, classes = images[order], classes[order]

    def styles(layer: str) -> Style:
        return Style.of_phi(torch.stack([phi(model, layer, some).mean(dim=0) for some, _, _ in batches]))

    def scores(some: Tensor) -> list[float]:
        if whitened is None:
            return far_score(features_at(model, [gate], some)[gate], styles(gate)).tolist()
        return whitened([phi(model, gate, batch) for batch, _, _ in batches], phi(model, gate, some))

    def part_of_the_way(layer: str) -> Layer:
        variant, sources = Variant(everything=True, fraction=way.fraction), styles(layer)
        return lambda maps: shifted_as(variant, maps, sources, 0.0)

    falling = sorted(scores(images), reverse=True)
    most = int(0.1 * len(images))
    alpha = (falling[most] + falling[most - 1]) / 2
    shifts = {layer: part_of_the_way(layer) for layer in way.at}
    looks, far, gains = {}, [], []
    for name, strange in strange_looks(images, 0).items():
        for image, label, score in zip(strange.split(1), classes, scores(strange), strict=True):
            far.append(score > alpha)
            gain = int(run(model, image, shifts) == label) - int(run(model, image, {}) == label) if far[-1] else 0
            gains.append(gain)
        looks[name] = sum(gains[-len(images) :]) / len(images)
    mean = sum(gains) / len(gains)
    own = [sum(gains[image :: len(images)]) / len(looks) for image in range(len(images))]
    error = (sum((gain - mean) ** 2 for gain in own) / len(own) / len(own)) ** 0.5
    return Tried(gate, way.at, way.fraction, alpha, sum(far) / len(far), mean, error, looks)


def flat(tried: Tried) -> dict[str, float]:
    """Its numbers: pytest.approx takes no dict in a dict, and no words."""
    facts = asdict(tried)
    return {**facts.pop("looks"), **{name: value for name, value in facts.items() if isinstance(value, float)}}


@pytest.mark.parametrize("metric", ["mahalanobis", "euclidean"])
def test_every_way_recovers_what_it_does_by_hand(
    conv_net: nn.Module,
    reading: Reading,
    batches: list[Batch],
    apart: list[Batch],
    metric: Metric,
    whitened_scores: Scoring,
) -> None:
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart, metric=metric), LAYERS)
    assert found.calibration is not None
    rows = {("stem", ("stem", "block1"), 0.5), ("stem", ("stem", "block1"), 0.7)}
    assert {(one.gate_at, one.at, one.fraction) for one in found.calibration.tried} == rows | {
        ("stem", ("stem",), 1.0),
        ("stem", ("block1",), 1.0),
        ("block1", ("block1",), 1.0),
    }
    assert any(one.recovered != 0 for one in found.calibration.tried)
    for one in found.calibration.tried:
        whitened = whitened_scores if metric == "mahalanobis" else None
        wanted = by_hand(conv_net, batches, apart, one.gate_at, Way(one.at, one.fraction), whitened)
        assert flat(one) == pytest.approx(flat(wanted), rel=1e-4)


def test_the_best_is_taken_with_its_threshold(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), LAYERS)
    assert found.calibration is not None
    taken, *others = found.calibration.tried
    assert [other.recovered for other in others] == sorted((other.recovered for other in others), reverse=True)
    best = max(found.calibration.tried, key=lambda one: one.recovered)
    assert taken.recovered >= best.recovered - best.error
    assert ((found.sources.at, *(styles.at for styles in found.then)), found.alpha) == (taken.at, taken.alpha)
    assert (at_of(found.gate), found.variant) == (taken.gate_at, Variant(fraction=taken.fraction))
    assert list(taken.looks) == list(LOOKS)


STEM, BLOCK, ROW = Way(("stem",)), Way(("block1",)), Way(("stem", "block1"), 0.5)


@pytest.mark.parametrize(
    ("gains", "taken"),
    [
        # without doubt the best
        ({("block1", BLOCK): 0.5}, ("block1", BLOCK)),
        # within the best one's error: what decides first
        ({("block1", BLOCK): 0.5, ("stem", BLOCK): 0.42}, ("stem", BLOCK)),
        ({("block1", BLOCK): 0.5, ("stem", BLOCK): 0.38}, ("block1", BLOCK)),
        # of what decides first: what begins to shift first
        ({("stem", BLOCK): 0.5, ("stem", STEM): 0.42}, ("stem", STEM)),
        # of that: what goes in most steps
        ({("stem", BLOCK): 0.5, ("stem", STEM): 0.45, ("stem", ROW): 0.42}, ("stem", ROW)),
        # of that: what recovers most
        ({("stem", ROW): 0.42, ("stem", Way(ROW.at, 0.7)): 0.45, ("stem", STEM): 0.5}, ("stem", Way(ROW.at, 0.7))),
        ({("stem", ROW): 0.45, ("stem", Way(ROW.at, 0.7)): 0.42, ("stem", STEM): 0.5}, ("stem", ROW)),
    ],
)
def test_of_all_that_chance_cannot_tell_from_the_best_the_earliest_and_gentlest_is_taken(
    reading: Reading,
    batches: list[Batch],
    apart: list[Batch],
    monkeypatch: pytest.MonkeyPatch,
    gains: dict[tuple[str, Way], float],
    taken: tuple[str, Way],
) -> None:
    def tried(self: object, gate: str, way: Way, looks: object) -> Tried:
        return Tried(gate, way.at, way.fraction, 1.0, 0.5, gains.get((gate, way), 0.1), 0.1, {})

    monkeypatch.setattr(layer_choice.Trial, "_tried", tried)
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), LAYERS)
    assert found.calibration is not None
    first, *others = found.calibration.tried
    assert (first.gate_at, Way(first.at, first.fraction)) == taken
    assert [one.recovered for one in others] == sorted((one.recovered for one in others), reverse=True)
    assert (at_of(found.gate), found.sources.at, found.variant.fraction) == (first.gate_at, first.at[0], first.fraction)


def test_what_loses_is_not_taken_where_something_helps() -> None:
    found = [Tried("a", ("a",), 1.0, 1.0, 0.5, gain, 0.6, {}) for gain in (0.4, 0.1, 0.0, -0.15)]
    assert [one.recovered for one in layer_choice._as_good(found)] == [0.4, 0.1]
    assert [one.recovered for one in layer_choice._as_good(found[2:])] == [0.0, -0.15]


def test_a_row_that_is_the_best_is_taken_with_its_fraction(
    reading: Reading, batches: list[Batch], apart: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Way(("stem", "block1"), fraction) for fraction in (0.3, 0.9)]
    monkeypatch.setattr(layer_choice, "ways_to_try", lambda layers, variant: rows)
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart, metric="euclidean"), LAYERS)
    assert found.calibration is not None
    assert [(one.gate_at, one.at) for one in found.calibration.tried] == [("stem", ("stem", "block1"))] * 2
    assert found.variant == Variant(fraction=found.calibration.tried[0].fraction)
    assert (found.sources.at, [styles.at for styles in found.then], found.gate) == ("stem", ["block1"], None)


def test_a_variant_that_is_asked_for_is_tried_as_it_is(
    reading: Reading, batches: list[Batch], apart: list[Batch]
) -> None:
    asked = Variant(to="soft", fraction=0.4)
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), LAYERS, variant=asked)
    assert found.calibration is not None
    assert {(one.at, one.fraction) for one in found.calibration.tried} == {(("stem",), 0.4), (("block1",), 0.4)}
    assert found.variant == asked


def test_without_classes_it_is_agreement_with_the_untouched_image(
    conv_net: nn.Module, reading: Reading, batches: list[Batch], apart: list[Batch]
) -> None:
    said = [(images, conv_net(images).argmax(dim=1), names) for images, _, names in apart]
    told = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=said), LAYERS)
    untold = [images for images, _, _ in apart]
    assert with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=untold), LAYERS).calibration == (
        told.calibration
    )


def test_neither_order_nor_batch_size_matters(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    one = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), LAYERS)
    mixed = [
        (apart[1][0][:7], apart[1][1][:7], ["any"] * 7),
        apart[0],
        (apart[1][0][7:], apart[1][1][7:], ["any"] * 13),
    ]
    other = with_chosen_layers(reading, batches[::-1], Wish(false_shift=0.1, holdout=mixed), LAYERS)
    assert one.calibration is not None
    assert other.calibration is not None
    for mine, yours in zip(one.calibration.tried, other.calibration.tried, strict=True):
        assert flat(mine) == pytest.approx(flat(yours), rel=1e-5)


def test_the_seed_is_the_looks(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    one, same, other = (
        with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart, seed=seed), LAYERS).calibration
        for seed in (0, 0, 1)
    )
    assert one == same
    assert one != other


def test_a_gate_that_is_named_stays(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), ["block1"], "stem")
    assert found.calibration is not None
    assert [(one.gate_at, one.at) for one in found.calibration.tried] == [("stem", ("block1",))]
    assert at_of(found.gate) == "stem"


def test_a_model_that_no_shift_helps_is_warned_of(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    right = [(images, reading.model(images).argmax(dim=1) * 0, names) for images, _, names in apart]
    with torch.no_grad():
        reading.model.get_submodule("head").bias[0] = 1e6  # type: ignore[index]  # says class 0 whatever comes
    with pytest.warns(UserWarning, match=r"the best, stem and block1, changes it by \+0\.0%"):
        with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=right), LAYERS)


def test_a_model_without_logits_is_refused(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    maps = nn.Sequential(reading.model.get_submodule("stem"), reading.model.get_submodule("block1"))
    with pytest.raises(ValueError, match=r"logits \[B, K\]; Sequential gives \[.*\]\. Name a layer"):
        with_chosen_layers(Reading(maps), batches, Wish(false_shift=0.1, holdout=apart), ["0"])


# --- which images are kept


def kept_of(batches: list[Batch]) -> HeldImages:
    kept = HeldImages()
    for batch in batches:
        kept.watch(batch, batch[0], image_keys(batch[0]), torch.ones(len(batch[0]), dtype=torch.bool))
    return kept


def test_only_so_many_images_are_kept_and_they_are_those_with_the_smallest_hashes(
    monkeypatch: pytest.MonkeyPatch, batches: list[Batch]
) -> None:
    monkeypatch.setattr(layer_choice, "IMAGES", 50)
    kept = kept_of(batches)
    images, classes = torch.cat([some for some, _, _ in batches]), torch.cat([some for _, some, _ in batches])
    smallest = image_keys(images).sort().indices[:50]
    assert torch.equal(kept.images, images[smallest])
    assert kept.classes is not None
    assert torch.equal(kept.classes, classes[smallest])


def test_images_that_are_not_held_out_are_not_kept(batches: list[Batch]) -> None:
    kept, (images, classes, names) = HeldImages(), batches[0]
    kept.watch((images, classes, names), images, image_keys(images), torch.arange(60) < 3)
    assert len(kept.images) == 3


@pytest.mark.parametrize("classes", [["a"] * 60, torch.zeros(60, 5), torch.zeros(60)])
def test_classes_that_are_no_numbers_are_not_known(batches: list[Batch], classes: object) -> None:
    images, _, names = batches[0]
    assert kept_of([(images, classes, names)]).classes is None  # type: ignore[list-item]  # classes of another kind


def test_a_pair_of_images_and_domains_has_no_classes(batches: list[Batch]) -> None:
    kept, (images, _, _) = HeldImages(), batches[0]
    kept.watch((images, torch.zeros(60)), images, image_keys(images), torch.ones(60, dtype=torch.bool))
    assert kept.classes is None


# --- which ways are tried


def test_each_layer_is_tried_alone_and_two_and_three_in_a_row_a_part_of_the_way() -> None:
    alone, rows = [Way((at,), 1.0) for at in ("a", "b", "c", "d")], []
    for row in (("a", "b"), ("b", "c"), ("c", "d"), ("a", "b", "c"), ("b", "c", "d")):
        rows += [Way(row, 0.5), Way(row, 0.7)]
    assert ways_to_try(["a", "b", "c", "d"], Variant()) == [*alone, *rows]


def test_of_one_layer_there_is_no_row() -> None:
    assert ways_to_try(["a"], Variant()) == [Way(("a",), 1.0)]


@pytest.mark.parametrize("variant", ["partial=0.6", "soft", "sampled"])
def test_where_a_variant_is_asked_for_no_rows_are_tried(variant: str) -> None:
    kind = Variant.named(variant)
    assert ways_to_try(["a", "b"], kind) == [Way(("a",), kind.fraction), Way(("b",), kind.fraction)]


# --- which layers are tried


class Blocks(nn.Module):
    """Ten blocks of a convolution each, then a head."""

    def __init__(self, count: int = 10) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(count)))
        self.last = nn.Conv2d(3, 3, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.blocks(images)).mean(dim=(2, 3))


def tried(model: nn.Module, gate_at: str | None = None) -> list[str]:
    return layers_to_try(model, places(model, drawn(1, 0)), gate_at)


def test_blocks_are_tried_and_not_the_deepest_and_what_comes_right_before_the_first(conv_net: nn.Module) -> None:
    assert tried(conv_net) == ["relu", "block1"]
    assert tried(conv_net, gate_at="block1") == ["block1"]


def test_of_a_resnet_the_stem_ends_with_its_pooling() -> None:
    model = ResNet("18", classes=2).eval()
    found = places(model, torch.zeros(1, 3, 64, 64))
    assert layers_to_try(model, found) == ["maxpool", "layer1", "layer2", "layer3"]
    assert layers_to_try(model, found, "maxpool") == ["maxpool", "layer1", "layer2", "layer3"]
    assert layers_to_try(model, found, "layer1") == ["layer1", "layer2", "layer3"]


def test_what_is_inside_a_block_is_no_stem_of_it() -> None:
    inside = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.Conv2d(3, 3, 1))
    assert tried(nn.Sequential(inside, nn.Conv2d(3, 4, 1))) == ["0"]


def test_the_stem_is_among_the_six_of_many() -> None:
    model = nn.Sequential(nn.Conv2d(3, 3, 1), *Blocks(11).blocks)
    assert tried(model) == ["0", "2", "4", "6", "8", "10"]


def test_where_there_are_no_blocks_any_layer_is(conv_net: nn.Module) -> None:
    assert tried(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten())) == ["0", "1"]


def test_the_outermost_blocks_are_tried() -> None:
    assert tried(Blocks(3)) == ["blocks"]
    assert tried(Blocks(3).blocks) == ["0", "1"]


def test_of_many_six_are_tried_from_first_to_last() -> None:
    names = tried(Blocks(11).blocks)
    assert names == ["0", "2", "4", "5", "7", "9"]
    assert len(tried(Blocks(7).blocks)) == 6


def test_only_layers_from_the_gate_on_are_tried() -> None:
    assert tried(Blocks(5).blocks, gate_at="2") == ["2", "3"]
    assert tried(Blocks(5).blocks, gate_at="2.0") == ["2", "3"]


def test_a_gate_that_is_not_there_is_answered_with_near_ones() -> None:
    with pytest.raises(
        KeyError, match=r"no layer 'block1' that gives maps once in a forward; did you mean one of \['blocks"
    ):
        tried(Blocks(3), gate_at="block1")


def test_no_layer_to_try_is_said() -> None:
    with pytest.raises(ValueError, match=r"found no layer of Conv2d that can take a shift"):
        tried(nn.Conv2d(3, 3, 1))
    with pytest.raises(ValueError, match=r"found no layer of Sequential from '4\.1' on"):
        tried(Blocks(5).blocks, gate_at="4.1")


def test_images_of_several_sizes_are_refused_at_the_first_that_differs(reading: Reading, apart: list[Batch]) -> None:
    met = []

    def mixed() -> Iterator[Tensor]:
        for size in (8, 8, 12, 8):
            met.append(size)
            yield torch.randn(30, 3, size, size, generator=torch.Generator().manual_seed(len(met)))

    with pytest.raises(ValueError, match=r"the first are \[3, 8, 8\], and these \[3, 12, 12\]\. Resize them"):
        with_chosen_layers(reading, apart, Wish(false_shift=0.1, holdout=mixed()), LAYERS)
    assert met == [8, 8, 12]
