"""What fit and load refuse and warn of, and the file between them."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from styleshift.shifted import ShiftedModel, fingerprint, fit, load
from styleshift.sources import sources_of

Batches = list[tuple[Tensor, Tensor, list[str]]]


@pytest.fixture
def robust(conv_net: nn.Module, batches: Batches) -> ShiftedModel:
    return fit(conv_net, batches, at="block1", alpha=2.0)


class Twice(nn.Module):
    """A network whose block runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Conv2d(3, 3, 3, padding=1)
        self.last = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.block(self.block(images))).square().mean(dim=(2, 3))


# --- a caller's mistakes


def untouchable() -> Iterator[object]:
    """Batches that nobody may read."""
    pytest.fail("an image was read before the settings were checked")
    yield


def test_without_a_layer_it_lists_those_that_can_take_it(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.raises(ValueError, match=r"block1 \(16 channels\)") as error:
        fit(conv_net, batches)
    assert "block2" not in str(error.value)  # the deepest
    assert "head" not in str(error.value)


def test_a_wrong_layer_is_answered_with_near_ones(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.raises(KeyError, match=r"no module 'blok1'; did you mean one of \['block1'"):
        fit(conv_net, batches, at="blok1")


def test_a_layer_without_maps_is_answered_with_those_that_have_them(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.raises(ValueError, match=r"'head' gives .* block1"):
        fit(conv_net, batches, at="head")


@pytest.mark.parametrize("at", ["block2", "block2.1"])
def test_the_deepest_layer_is_warned_of(conv_net: nn.Module, batches: Batches, at: str) -> None:
    with pytest.warns(UserWarning, match=f"'{at}' is the deepest layer"):
        fit(conv_net, batches, at=at)


def test_maps_of_one_place_are_warned_of(batches: Batches) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 5, 1), nn.Flatten())
    with pytest.warns(UserWarning, match="'1' is the deepest layer"):
        fit(model, batches, at="1")


@pytest.mark.parametrize("alpha", [-1.0, math.nan])
def test_alpha_is_at_least_zero(conv_net: nn.Module, alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha is at least 0"):
        fit(conv_net, untouchable(), at="block1", alpha=alpha)


def test_clusters_are_at_least_one(conv_net: nn.Module) -> None:
    with pytest.raises(ValueError, match="clusters is how many"):
        fit(conv_net, untouchable(), at="block1", clusters=0)


def test_a_wrong_variant_is_said_before_any_image_is_read(conv_net: nn.Module) -> None:
    with pytest.raises(ValueError, match="ts, all, sampled, soft, partial"):
        fit(conv_net, untouchable(), at="block1", variant="nearest")


def test_no_batch_is_said(conv_net: nn.Module) -> None:
    with pytest.raises(ValueError, match="no image came"):
        fit(conv_net, [], at="block1")


def test_a_generator_is_read_once_and_whole(conv_net: nn.Module, batches: Batches) -> None:
    assert fit(conv_net, iter(batches), at="block1").sources.counts.tolist() == [6, 6, 6]


def test_an_image_that_is_no_number_makes_no_centre(conv_net: nn.Module, batches: Batches) -> None:
    batches[2][0][4, 0, 0, 0] = math.nan
    with pytest.raises(ValueError, match="1 of 6 images in batch 2"):
        fit(conv_net, batches, at="block1")


def test_a_single_image_is_refused_with_advice(robust: ShiftedModel, unseen: Tensor) -> None:
    for call in (robust, robust.explain):
        with pytest.raises(ValueError, match=r"\[3, 16, 16\]. Use images.unsqueeze\(0\)"):
            call(unseen[0])


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (torch.zeros(2, 1, 16, 16), r"\[B, 3, H, W\].* got \[2, 1, 16, 16\]"),
        (torch.zeros(2, 16, 16, 3), r"\[B, 3, H, W\].* got \[2, 16, 16, 3\]"),
        (torch.zeros(2, 3, 16, 16, dtype=torch.uint8), "floating point .* got torch.uint8"),
        (torch.zeros(2, 3, 16, 16, 1), r"got torch.float32 \[2, 3, 16, 16, 1\]"),
        (torch.zeros(3), r"got torch.float32 \[3\]"),
    ],
)
def test_wrong_images_are_refused_in_our_words(robust: ShiftedModel, images: Tensor, said: str) -> None:
    for call in (robust, robust.explain):
        with pytest.raises(ValueError, match=said):
            call(images)


@pytest.mark.parametrize("images", [torch.zeros(2, 1, 16, 16), torch.zeros(2, 3, 16, 16, dtype=torch.float64)])
def test_images_that_the_model_does_not_take_are_refused_in_fit(conv_net: nn.Module, images: Tensor) -> None:
    with pytest.raises(ValueError, match="SmallConvNet does not run on the images of the first batch"):
        fit(conv_net, [(images, [0, 1])], at="block1")


def test_preprocessing_that_json_cannot_hold_is_refused(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.raises(ValueError, match="preprocessing is kept as JSON"):
        fit(conv_net, batches, at="block1", preprocessing={"mean": torch.zeros(3)})


# --- the file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "styles.safetensors"


def test_it_comes_back_from_its_file(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor, path: Path) -> None:
    robust.save(path)
    again = load(conv_net, path)
    assert torch.equal(again(unseen), robust(unseen))
    assert torch.equal(again.explain(unseen).score, robust.explain(unseen).score)
    assert (again.alpha, again.sources.domains) == (robust.alpha, robust.sources.domains)
    assert torch.equal(again.sources.counts, robust.sources.counts)


@pytest.mark.parametrize("variant", ["all", "sampled=3", "soft", "partial=0.4"])
def test_variants_come_back(conv_net: nn.Module, batches: Batches, unseen: Tensor, path: Path, variant: str) -> None:
    robust = fit(conv_net, batches, at="block1", alpha=1.0, variant=variant, seed=4)
    robust.save(path)
    assert torch.equal(load(conv_net, path)(unseen), robust(unseen))


def test_how_it_was_attached_comes_back(unseen: Tensor, path: Path) -> None:
    model = Twice().eval()
    robust = fit(model, [(unseen[:2], [0, 1])], at="block", alpha=0.0, calls="first")
    robust.save(path)
    assert torch.equal(load(model, path)(unseen), robust(unseen))


def test_preprocessing_comes_back(conv_net: nn.Module, batches: Batches, path: Path) -> None:
    robust = fit(conv_net, batches, at="block1", preprocessing={"size": 224, "mean": (0.5, 0.5, 0.5)})
    robust.save(path)
    assert load(conv_net, path).origin == robust.origin
    assert robust.origin.preprocessing == {"size": 224, "mean": [0.5, 0.5, 0.5]}


def test_its_file_says_what_it_is(conv_net: nn.Module, robust: ShiftedModel, path: Path) -> None:
    robust.save(path)
    with safe_open(path, framework="pt") as file:  # opens nothing but safetensors: no pickle inside
        header = json.loads(file.metadata()["header"])
    assert header["at"] == "block1"
    assert header["domains"] == ["art", "cartoon", "photo"]
    assert header["shift"]["alpha"] == 2.0
    assert header["shift"]["origin"]["fingerprint"] == fingerprint(conv_net)


def test_other_weights_are_refused(conv_net: nn.Module, robust: ShiftedModel, path: Path) -> None:
    robust.save(path)
    other = copy.deepcopy(conv_net)
    with torch.no_grad():
        next(other.parameters()).add_(1e-6)
    with pytest.raises(ValueError, match=r"other weights .* strict=False"):
        load(other, path)


def test_other_weights_are_warned_of_where_that_is_wanted(
    conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor, path: Path
) -> None:
    robust.save(path)
    other = copy.deepcopy(conv_net)
    with torch.no_grad():
        other.head.bias.add_(1.0)  # type: ignore[union-attr]
    with pytest.warns(UserWarning, match="other weights"):
        again = load(other, path, strict=False)
    torch.testing.assert_close(again(unseen), robust(unseen) + 1)


def test_weights_that_were_trained_on_are_refused_although_saved_later(
    conv_net: nn.Module, robust: ShiftedModel, path: Path
) -> None:
    with torch.no_grad():
        next(conv_net.parameters()).mul_(2)
    robust.save(path)
    with pytest.raises(ValueError, match="other weights"):
        load(conv_net, path)


def test_a_file_of_styles_alone_is_no_fitted_model(conv_net: nn.Module, robust: ShiftedModel, path: Path) -> None:
    robust.sources.save(path)
    with pytest.raises(ValueError, match="styles alone, no fitted model"):
        load(conv_net, path)


def test_a_missing_file_is_said(conv_net: nn.Module, path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file of styles"):
        load(conv_net, path)


def test_a_copy_can_be_saved(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor, path: Path) -> None:
    copy.deepcopy(robust).save(path)
    assert torch.equal(load(conv_net, path)(unseen), robust(unseen))


def test_merged_sources_of_two_machines_make_the_model_of_one(
    conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor
) -> None:
    parts = [sources_of(conv_net, some, "block1") for some in (batches[:1], batches[1:])]
    merged = ShiftedModel(conv_net, parts[0].merged(parts[1]), alpha=2.0)
    torch.testing.assert_close(merged(unseen), robust(unseen), rtol=1e-5, atol=1e-5)


# --- the fingerprint


def test_the_fingerprint_tells_names_values_shapes_and_types_apart() -> None:
    def of(**weights: Tensor) -> str:
        model = nn.Module()
        for name, weight in weights.items():
            model.register_buffer(name, weight)
        return fingerprint(model)

    zeros = torch.zeros(2, 3)
    different = [
        of(a=zeros),
        of(b=zeros),
        of(a=zeros + 1e-30),
        of(a=zeros.T),
        of(a=zeros.half()),
        of(a=zeros, b=zeros),
        of(),
    ]
    assert len(set(different)) == len(different)
    assert of(a=zeros, b=zeros + 1) == of(b=zeros + 1, a=zeros)


def test_the_fingerprint_takes_any_kind_of_tensor_and_extra_state() -> None:
    class Remembering(nn.Module):
        def get_extra_state(self) -> dict[str, int]:
            return {"steps": 3}

    model = Remembering()
    for name, kind in enumerate([torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64]):
        model.register_buffer(f"b{name}", torch.ones((), dtype=kind))
    model.register_buffer("empty", torch.zeros(0, 4))
    assert len(fingerprint(model)) == 64


def test_the_fingerprint_does_not_count_batches() -> None:
    model = nn.BatchNorm2d(3)
    before = fingerprint(model)
    assert model.num_batches_tracked is not None
    model.num_batches_tracked += 1
    assert fingerprint(model) == before
