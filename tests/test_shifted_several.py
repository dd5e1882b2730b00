"""A model that shifts at several layers what one gate calls far."""

import copy
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from styleshift import layer_choice
from styleshift.attaching import features_at
from styleshift.layer_choice import Way
from styleshift.shifted import ShiftedModel, fit, load
from styleshift.style.shifting import Variant, far_score, shifted_as

Batches = list[tuple[Tensor, Tensor, list[str]]]
NAMES = ("stem", "relu", "block1", "block2")
AT = ("stem", "block1")
FAR = [False, False, True, True, True]


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def many() -> Batches:
    looks = {"art": (0.5, 0.0), "cartoon": (1.5, 1.0), "photo": (1.0, -1.0)}
    return [
        (drawn(100, seed) * contrast + brightness, torch.arange(100) % 5, [name] * 100)
        for seed, (name, (contrast, brightness)) in enumerate(looks.items())
    ]


@pytest.fixture
def robust(conv_net: nn.Module, batches: Batches) -> ShiftedModel:
    return fit(conv_net, batches, at=AT, alpha=2.0, variant="partial=0.5")


def by_hand(
    model: Any,
    batches: Batches,
    images: Tensor,
    at: Sequence[str],
    alpha: float,
    fraction: float,
    gate_at: str | None = None,
) -> tuple[Tensor, list[bool]]:
    """The logits, and who is far, step by step in float64, one sample at a time."""
    model = copy.deepcopy(model).double().eval()

    def style(maps: Tensor) -> Tensor:
        return torch.cat([maps.mean(dim=(1, 2)), (maps.var(dim=(1, 2), unbiased=False) + 1e-6).sqrt()])

    def plain_at(layer: str, some: Tensor) -> Tensor:
        features = some.double()
        for name in NAMES[: NAMES.index(layer) + 1]:
            features = getattr(model, name)(features.clone())
        return features

    def centres_at(layer: str) -> list[Tensor]:
        return [torch.stack([style(maps) for maps in plain_at(layer, some)]).mean(dim=0) for some, _, _ in batches]

    def score(maps: Tensor, centres: list[Tensor]) -> float:
        middle = sum(centres) / len(centres)
        spread = sum(float((centre - middle).norm()) for centre in centres) / len(centres)
        return sum(float((style(maps) - centre).norm()) for centre in centres) / len(centres) / spread

    def moved(maps: Tensor, centres: list[Tensor]) -> Tensor:
        own = style(maps)
        gaps = [float((own - centre).norm()) for centre in centres]
        goal = own + fraction * (centres[gaps.index(min(gaps))] - own)
        (mean, std), (new_mean, new_std) = own[:, None, None].chunk(2), goal[:, None, None].chunk(2)
        return (maps - mean) / std * new_std + new_mean

    gate = gate_at or at[0]
    with torch.no_grad():
        deciding = centres_at(gate)
        centres = {layer: centres_at(layer) for layer in at}
        rows, far = [], []
        for image in images:
            far.append(score(plain_at(gate, image[None])[0], deciding) > alpha)
            features = image.double()
            for name in NAMES:
                features = getattr(model, name)(features.clone()[None])[0]
                if far[-1] and name in at:
                    features = moved(features, centres[name])
            rows.append(model.head(features.mean(dim=(1, 2))))
    return torch.stack(rows), far


def expect_close(given: Tensor, wanted: Tensor, within: float = 1e-4) -> None:
    torch.testing.assert_close(given.double(), wanted.double(), rtol=within, atol=within)


# --- what it computes


@pytest.mark.parametrize("at", [("stem", "block1"), ("relu", "block1"), ["stem", "relu", "block1"], ("stem",)])
@pytest.mark.parametrize("fraction", [0.5, 1.0])
def test_it_is_the_model_with_a_shift_after_each_layer_for_those_that_are_far(
    conv_net: nn.Module, batches: Batches, unseen: Tensor, at: Sequence[str], fraction: float
) -> None:
    robust = fit(conv_net, batches, at=at, alpha=2.0, variant=f"partial={fraction}")
    wanted, far = by_hand(conv_net, batches, unseen, at, 2.0, fraction)
    assert far == FAR
    expect_close(robust(unseen), wanted)
    assert robust.explain(unseen).far.tolist() == FAR
    assert [robust.attaching.at, *robust.attaching.then] == list(at)


@torch.no_grad()
def test_it_is_the_very_shift_of_each_layer(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    variant, far = Variant(fraction=0.5), torch.tensor(FAR)
    features = unseen
    for name in NAMES:
        features = conv_net.get_submodule(name)(features.clone())
        for styles in (robust.sources, *robust.then):
            if styles.at == name:
                features = shifted_as(variant, features, styles.style, 2.0, far=far)
    assert torch.equal(robust(unseen), conv_net.get_submodule("head")(features.mean(dim=(2, 3))))


def test_near_images_get_the_very_logits_of_the_model(
    conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor
) -> None:
    assert torch.equal(robust(unseen[:2]), conv_net(unseen[:2]))
    assert (robust(unseen)[2:] != conv_net(unseen)[2:]).any(dim=1).all()


def test_one_layer_in_a_tuple_is_that_layer(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    one, named = (fit(conv_net, batches, at=at, alpha=2.0) for at in (("block1",), "block1"))
    assert one.attaching == named.attaching
    assert torch.equal(one(unseen), named(unseen))


def test_one_decision_holds_for_all_layers(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    # an alpha at which block1 by itself would call other images far than the stem does
    scores = [fit(conv_net, batches, at=layer).explain(unseen).score for layer in AT]
    alphas = [float(alpha) for alpha in torch.cat(scores) + 1e-3]
    alpha = next(alpha for alpha in alphas if (scores[0] > alpha).tolist() != (scores[1] > alpha).tolist())
    robust = fit(conv_net, batches, at=AT, alpha=alpha, variant="partial=0.5")
    wanted, far = by_hand(conv_net, batches, unseen, AT, alpha, 0.5)
    assert far == (scores[0] > alpha).tolist()
    expect_close(robust(unseen), wanted)
    near = ~torch.tensor(far)
    assert torch.equal(robust(unseen[near]), conv_net(unseen[near]))


@pytest.mark.parametrize("alpha", [2.0, 0.0, 1e6])
def test_a_gate_before_all_of_them_decides(conv_net: nn.Module, batches: Batches, unseen: Tensor, alpha: float) -> None:
    robust = fit(conv_net, batches, at=("relu", "block1"), alpha=alpha, variant="partial=0.5", gate_at="stem")
    wanted, far = by_hand(conv_net, batches, unseen, ("relu", "block1"), alpha, 0.5, gate_at="stem")
    assert robust.attaching.gate_at == "stem"
    assert robust.explain(unseen).far.tolist() == far
    expect_close(robust(unseen), wanted)


def test_a_gate_at_the_first_of_them_is_as_without(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    named, plain = (fit(conv_net, batches, at=AT, alpha=2.0, gate_at=gate) for gate in ("stem", None))
    assert (named.attaching, named.gate) == (plain.attaching, None)
    assert torch.equal(named(unseen), plain(unseen))


@torch.no_grad()
@pytest.mark.parametrize("gate_at", ["stem", None])
def test_a_found_threshold_is_the_gates_at_the_first_layer(
    conv_net: nn.Module, many: Batches, unseen: Tensor, gate_at: str | None
) -> None:
    robust = fit(conv_net, many, at=AT, alpha="auto", false_shift=0.1, variant="partial=0.5", gate_at=gate_at)
    assert robust.gate is not None
    assert (robust.gate.at, robust.attaching.gate_at, robust.attaching.decided_at) == ("stem", "stem", "stem")
    far = far_score(conv_net.get_submodule("stem")(unseen), robust.gate.style, robust.gate.whitening) > robust.alpha
    assert far.tolist() == robust.explain(unseen).far.tolist() == FAR
    number = fit(conv_net, many, at=AT, alpha=2.0, variant="partial=0.5")
    assert number.explain(unseen).far.tolist() == FAR
    expect_close(robust(unseen), number(unseen), within=0.05)  # of nearly the same centres
    assert torch.equal(robust(unseen[:2]), conv_net(unseen[:2]))


def test_explain_is_of_the_first_layer(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    maps = features_at(conv_net, ["stem"], unseen)["stem"]
    phi = torch.cat([maps.mean(dim=(2, 3)), (maps.var(dim=(2, 3), correction=0) + 1e-6).sqrt()], dim=1)
    seen = robust.explain(unseen)
    torch.testing.assert_close(seen.score, far_score(maps, robust.sources.style))
    assert torch.equal(seen.nearest, torch.cdist(phi, robust.sources.style.phi).argmin(dim=1))


def test_all_shifts_everything_at_every_layer_and_has_no_gate(
    conv_net: nn.Module, batches: Batches, unseen: Tensor, tmp_path: Path
) -> None:
    robust = fit(conv_net, batches, at=AT, alpha=1e6, variant="all")
    assert robust.shifting.gate is None
    assert robust.further[0].gate is None
    assert robust.explain(unseen).far.all()
    expect_close(robust(unseen), by_hand(conv_net, batches, unseen, AT, -1.0, 1.0)[0])
    robust.save(tmp_path / "s")
    assert torch.equal(load(conv_net, tmp_path / "s")(unseen), robust(unseen))


def test_sampled_goes_to_one_and_the_same_training_image_at_every_layer(conv_net: nn.Module, batches: Batches) -> None:
    robust = fit(conv_net, batches, at=AT, alpha=0.0, variant="sampled=1000")
    images = batches[1][0]
    # every training image's own style is among the samples, so it stays what it is
    expect_close(robust(images), conv_net(images))


def test_soft_at_temperature_zero_is_nearest(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    soft, nearest = (fit(conv_net, batches, at=AT, alpha=2.0, variant=variant) for variant in ("soft=1e-6", "ts"))
    expect_close(soft(unseen), nearest(unseen))


def test_clusters_are_made_at_every_layer(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    clustered = fit(conv_net, [images for images, _, _ in batches], at=AT, clusters=3, alpha=2.0)
    assert [len(styles.domains) for styles in (clustered.sources, *clustered.then)] == [3, 3]
    expect_close(clustered(unseen), fit(conv_net, batches, at=AT, alpha=2.0)(unseen))


def test_a_generator_is_read_once_and_whole(conv_net: nn.Module, batches: Batches) -> None:
    robust = fit(conv_net, iter(batches), at=AT)
    assert [styles.counts.tolist() for styles in (robust.sources, *robust.then)] == [[6, 6, 6]] * 2


class Twice(nn.Module):
    """Its `first` runs twice, then its `next`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.next, self.last = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.next(self.first(self.first(images)))).square().mean(dim=(2, 3))


@torch.no_grad()
def test_the_first_calls_alone_can_be_shifted(batches: Batches, unseen: Tensor) -> None:
    model = Twice().eval()
    robust = fit(model, batches, at=("first", "next"), alpha=0.0, variant="partial=0.5", calls="first")
    half = Variant(everything=True, fraction=0.5)
    maps = shifted_as(half, model.first(unseen), robust.sources.style, 0.0)
    maps = shifted_as(half, model.next(model.first(maps)), robust.then[0].style, 0.0)
    for _ in range(2):  # and again at the next forward
        expect_close(robust(unseen), model.last(maps).square().mean(dim=(2, 3)))


@pytest.mark.filterwarnings("ignore:shifting at no layer recovers")
def test_a_row_that_is_chosen_is_the_row_that_is_named(
    conv_net: nn.Module, many: Batches, unseen: Tensor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(layer_choice, "ways_to_try", lambda layers, variant: [Way(tuple(layers), 0.7)])
    robust = fit(conv_net, many, at="auto", alpha="auto", false_shift=0.1)
    named = fit(conv_net, many, at=("relu", "block1"), alpha="auto", false_shift=0.1, variant="partial=0.7")
    assert (robust.attaching, robust.shifting.variant) == (named.attaching, named.shifting.variant)
    assert torch.equal(robust(unseen), named(unseen))
    robust.save(tmp_path / "s")
    back = load(conv_net, tmp_path / "s")
    assert back.calibration == robust.calibration
    assert torch.equal(back(unseen), robust(unseen))


# --- it goes on being a module, and the model stays plain


def test_the_model_itself_stays_plain(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    before, state = conv_net(unseen), copy.deepcopy(conv_net.state_dict())
    robust = fit(conv_net, batches, at=AT, alpha=0.0)
    robust(unseen)
    assert torch.equal(conv_net(unseen), before)
    assert list(conv_net.state_dict()) == list(state) == list(robust.model.state_dict())
    assert all(torch.equal(tensor, state[name]) for name, tensor in conv_net.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in conv_net.modules())
    assert {id(weight) for weight in conv_net.parameters()} == {id(weight) for weight in robust.parameters()}


def test_in_train_mode_it_is_the_plain_model(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    shifted = robust(unseen)
    assert torch.equal(robust.train()(unseen), conv_net(unseen))
    assert torch.equal(robust.eval()(unseen), shifted)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_gives_the_same_by_one_gate_of_its_own(
    robust: ShiftedModel, unseen: Tensor, copied: Callable[[ShiftedModel], ShiftedModel]
) -> None:
    wanted = robust(unseen)
    double = copied(copied(robust))
    assert torch.equal(double(unseen), wanted)
    assert double.shifting.gate is double.further[0].gate
    assert torch.equal(robust(unseen), wanted)


def test_a_deep_copy_is_on_its_own(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted, double = robust(unseen), copy.deepcopy(robust)
    assert double.shifting.gate is not None
    double.shifting.gate.alpha = math.inf
    double.further[0].source_mean.zero_()
    assert not torch.equal(double(unseen), wanted)
    assert torch.equal(robust(unseen), wanted)


def test_its_state_dict_goes_in_and_out(
    conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor
) -> None:
    wanted, state = robust(unseen), copy.deepcopy(robust.state_dict())
    louder = [(some * 3, kinds, names) for some, kinds, names in batches]
    other = fit(copy.deepcopy(conv_net), louder, at=AT, alpha=2.0, variant="partial=0.5")
    assert not torch.equal(other(unseen), wanted)
    other.load_state_dict(state)
    assert torch.equal(other(unseen), wanted)


def test_it_works_under_autocast_and_in_other_precisions(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    with torch.autocast("cpu", torch.bfloat16):
        expect_close(robust(unseen), wanted, within=0.1)
    expect_close(copy.deepcopy(robust).double()(unseen.double()), wanted)
    expect_close(robust.bfloat16()(unseen.bfloat16()), wanted, within=0.1)


def test_gradients_reach_the_images_and_the_weights(robust: ShiftedModel, unseen: Tensor) -> None:
    unseen.requires_grad_()
    robust(unseen).square().sum().backward()
    assert unseen.grad is not None
    assert unseen.grad.isfinite().all()
    assert all(weight.grad is not None for weight in robust.parameters())


def test_nothing_is_kept_of_a_forward(robust: ShiftedModel, unseen: Tensor) -> None:
    robust(unseen)
    assert robust.shifting.gate is not None
    with pytest.raises(ValueError, match="seen none"):
        robust.shifting.gate.decided(unseen)


def test_threads_get_right_answers_from_one_model(
    robust: ShiftedModel, unseen: Tensor, expect_same_in_threads: Callable[..., None]
) -> None:
    expect_same_in_threads(robust, (unseen, unseen.flip(0), unseen[2:3], unseen[:1]))


def test_it_compiles_to_one_graph_and_exports_with_a_dynamic_batch(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import torch
from torch import nn
import styleshift

torch.manual_seed(0)
torch.set_num_threads(2)
block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
model = nn.Sequential()
for number, (a, b) in enumerate([(3, 4), (4, 6), (6, 8)]):
    model.add_module(f"layer{number}", block(a, b))
model.add_module("pool", nn.AdaptiveAvgPool2d(1))
model.add_module("flatten", nn.Flatten())
model.eval()
images = torch.randn(60, 3, 8, 8) * torch.arange(1, 4).repeat(20)[:, None, None, None]
strange = torch.randn(6, 3, 8, 8) * torch.tensor([1.0, 2, 2, 3, 40, 50])[:, None, None, None]
robust = styleshift.fit(
    model, [(images, [0, 1, 2] * 20)], at=("layer0", "layer1"), alpha="auto", holdout=[(images[:20], [0] * 20)],
    variant="partial=0.5",
)
batch = torch.export.Dim("batch", min=1, max=1024)
with torch.no_grad():
    assert robust.gate.whitening is not None
    assert 0 < robust.explain(strange).far.sum() < 6
    assert not torch.allclose(robust(strange), model(strange))
    compiled = torch.compile(robust, backend="aot_eager", fullgraph=True)
    exported = torch.export.export(robust, (strange,), dynamic_shapes=({0: batch},), strict=False).module()
    for some in (strange, strange[:3], strange[-1:]):
        torch.testing.assert_close(compiled(some), robust(some))
        torch.testing.assert_close(exported(some), robust(some))
print("fine")
""")
    assert said == "fine\n"


# --- the file


@pytest.mark.parametrize("alpha", [2.0, "auto"])
@pytest.mark.parametrize("gate_at", ["stem", None])
def test_its_file_gives_it_back(
    conv_net: nn.Module, many: Batches, unseen: Tensor, tmp_path: Path, alpha: Any, gate_at: str | None
) -> None:
    robust = fit(
        conv_net, many, at=("relu", "block1"), alpha=alpha, variant="partial=0.5", gate_at=gate_at, false_shift=0.1
    )
    robust.save(tmp_path / "s")
    with safe_open(tmp_path / "s", framework="pt") as file:
        assert file.metadata()["version"] == "3"
    back = load(conv_net, tmp_path / "s")
    assert (back.alpha, back.attaching, back.calibration) == (robust.alpha, robust.attaching, robust.calibration)
    assert back.attaching.then == ("block1",)
    assert torch.equal(back(unseen), robust(unseen))
    assert torch.equal(back.explain(unseen).score, robust.explain(unseen).score)
    copy.deepcopy(back).save(tmp_path / "again")
    assert torch.equal(load(conv_net, tmp_path / "again")(unseen), robust(unseen))


# --- a caller's mistakes


def test_layers_in_another_order_are_refused(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.raises(ValueError, match="'block1' needs to be a layer that runs before 'stem'"):
        fit(conv_net, batches, at=("block1", "stem"))
    with pytest.raises(ValueError, match="'block1' needs to be a layer that runs before 'stem'"):
        fit(conv_net, batches, at=("stem", "block1"), gate_at="block1")


@pytest.mark.parametrize("at", [(), [], ("stem", "stem"), ("stem", "block1", "stem")])
def test_no_layer_and_the_same_layer_twice_are_refused_before_an_image_is_read(
    conv_net: nn.Module, at: Sequence[str]
) -> None:
    def untouchable() -> Any:
        pytest.fail("an image was read before the settings were checked")
        yield

    with pytest.raises(ValueError, match="at names one layer, or several different ones in the order"):
        fit(conv_net, untouchable(), at=at)


def test_a_wrong_name_among_several_is_answered_with_near_ones(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.raises(KeyError, match=r"no module 'blok1'; did you mean one of \['block1'"):
        fit(conv_net, batches, at=("stem", "blok1"))


def test_the_deepest_among_several_is_warned_of(conv_net: nn.Module, batches: Batches) -> None:
    with pytest.warns(UserWarning, match="'block2' is the deepest layer"):
        fit(conv_net, batches, at=("block1", "block2"))


def test_a_layer_that_runs_twice_and_decides_is_asked_which_time(batches: Batches) -> None:
    with pytest.warns(UserWarning, match="'first' runs 2 times"), pytest.raises(ValueError, match="so which of its"):
        fit(Twice(), batches, at=("first", "next"))
