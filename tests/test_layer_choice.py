"""at="auto": layers from source data alone."""

from collections.abc import Iterator
from dataclasses import asdict

import pytest
import torch
from torch import Tensor, nn

from styleshift import layer_choice
from styleshift.attaching import features_at, places
from styleshift.calibrating import Reading, Tried, Wish, at_of
from styleshift.layer_choice import HeldImages, layers_to_try, with_chosen_layers
from styleshift.sources import image_keys
from styleshift.strange_looks import LOOKS, strange_looks
from styleshift.style.shifting import far_score, shift
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


def tail(model: nn.Module, at: str, features: Tensor) -> Tensor:
    """The rest of the network behind `at`."""
    names = ["stem", "relu", "block1", "block2"]
    for name in names[names.index(at) + 1 :]:
        features = model.get_submodule(name)(features)
    return model.get_submodule("head")(features.mean(dim=(2, 3))).argmax(dim=1)


@torch.no_grad()
def by_hand(model: nn.Module, batches: list[Batch], apart: list[Batch], gate: str, at: str) -> tuple[Tried, Style]:
    """One pair tried, one look and one image at a time."""
    images, classes = torch.cat([some for some, _, _ in apart]), torch.cat([some for _, some, _ in apart])
    order = image_keys(images).sort().indices
    images, classes = images[order], classes[order]

    def phi(layer: str, some: Tensor) -> Tensor:
        maps = features_at(model, [layer], some)[layer]
        return torch.cat([maps.mean(dim=(2, 3)), (maps.var(dim=(2, 3), unbiased=False) + 1e-6).sqrt()], dim=1)

    def styles(layer: str) -> Style:
        return Style.of_phi(torch.stack([phi(layer, some).mean(dim=0) for some, _, _ in batches]))

    scores = sorted(far_score(features_at(model, [gate], images)[gate], styles(gate)).tolist(), reverse=True)
    most = int(0.1 * len(images))
    alpha = (scores[most] + scores[most - 1]) / 2
    looks, far = {}, []
    for name, strange in strange_looks(images, 0).items():
        right = 0
        for image, label in zip(strange.split(1), classes, strict=True):
            features = features_at(model, [at], image)[at]
            is_far = float(far_score(features_at(model, [gate], image)[gate], styles(gate))) > alpha
            far.append(is_far)
            plain, shifted = tail(model, at, features), tail(model, at, shift(features, styles(at), 0.0))
            right += int((shifted if is_far else plain) == label) - int(plain == label)
        looks[name] = right / len(images)
    return Tried(gate, at, alpha, sum(far) / len(far), sum(looks.values()) / len(looks), looks), styles(gate)


def flat(tried: Tried) -> dict[str, float]:
    """Its numbers: pytest.approx takes no dict in a dict, and no words."""
    facts = asdict(tried)
    return {**facts.pop("looks"), **{name: value for name, value in facts.items() if isinstance(value, float)}}


def test_every_pair_recovers_what_it_does_by_hand(
    conv_net: nn.Module, reading: Reading, batches: list[Batch], apart: list[Batch]
) -> None:
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), LAYERS)
    assert found.calibration is not None
    assert {(one.gate_at, one.at) for one in found.calibration.tried} == {
        ("stem", "stem"),
        ("stem", "block1"),
        ("block1", "block1"),
    }
    assert any(one.recovered != 0 for one in found.calibration.tried)
    for one in found.calibration.tried:
        wanted, _ = by_hand(conv_net, batches, apart, one.gate_at, one.at)
        assert flat(one) == pytest.approx(flat(wanted), rel=1e-4)


def test_the_best_is_taken_with_its_threshold(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    found = with_chosen_layers(reading, batches, Wish(false_shift=0.1, holdout=apart), LAYERS)
    assert found.calibration is not None
    best, *others = found.calibration.tried
    assert all(best.recovered >= other.recovered for other in others)
    assert (found.sources.at, found.alpha) == (best.at, best.alpha)
    assert (at_of(found.gate) or best.at) == best.gate_at
    assert list(best.looks) == list(LOOKS)


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
    assert [(one.gate_at, one.at) for one in found.calibration.tried] == [("stem", "block1")]
    assert at_of(found.gate) == "stem"


def test_a_model_that_no_shift_helps_is_warned_of(reading: Reading, batches: list[Batch], apart: list[Batch]) -> None:
    right = [(images, reading.model(images).argmax(dim=1) * 0, names) for images, _, names in apart]
    with torch.no_grad():
        reading.model.get_submodule("head").bias[0] = 1e6  # type: ignore[index]  # says class 0 whatever comes
    with pytest.warns(UserWarning, match=r"at no layer recovers accuracy .* 'stem', changes it by \+0\.0%"):
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


def test_blocks_are_tried_and_not_the_deepest(conv_net: nn.Module) -> None:
    assert tried(conv_net) == ["block1"]


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
