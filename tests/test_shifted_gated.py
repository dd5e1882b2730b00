"""fit with alpha="auto", gate_at and at="auto": the model that comes of it, and its file."""

import copy
import json
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from styleshift.attaching import features_at
from styleshift.calibrating import Metric, one_in_ten
from styleshift.hashing import image_keys
from styleshift.shifted import ShiftedModel, fit, load
from styleshift.sources import sources_of
from styleshift.style.shifting import Variant, far_score, shift, shifted_as
from styleshift.style.statistics import style_of

Batches = list[tuple[Tensor, Tensor, list[str]]]


def drawn(count: int, seed: int) -> Tensor:
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def many() -> Batches:
    looks = {"art": (0.5, 0.0), "cartoon": (1.5, 1.0), "photo": (1.0, -1.0)}
    return [
        (drawn(100, seed) * contrast + brightness, torch.arange(100) % 5, [name] * 100)
        for seed, (name, (contrast, brightness)) in enumerate(looks.items())
    ]


@pytest.fixture(params=["mahalanobis", "euclidean"])
def robust(conv_net: nn.Module, many: Batches, request: pytest.FixtureRequest) -> ShiftedModel:
    return fit(conv_net, many, at="block1", alpha="auto", gate_at="stem", false_shift=0.1, metric=request.param)


def untouchable() -> Iterator[object]:
    """Batches that nobody may read."""
    pytest.fail("an image was read before the settings were checked")
    yield


@torch.no_grad()
def by_hand(model: nn.Module, robust: ShiftedModel, images: Tensor) -> Tensor:
    """The shift at block1 of those that are far at the stem."""
    assert robust.gate is not None
    found = features_at(model, ["stem", "block1"], images)
    far = far_score(found["stem"], robust.gate.style, robust.gate.whitening) > robust.alpha
    shifted = shift(found["block1"], robust.sources.style, 0.0)
    features = torch.where(far[:, None, None, None], shifted, found["block1"])
    return model.get_submodule("head")(model.get_submodule("block2")(features).mean(dim=(2, 3)))


def phi(model: nn.Module, layer: str, images: Tensor) -> Tensor:
    maps = features_at(model, [layer], images)[layer].double()
    return torch.cat([maps.mean(dim=(2, 3)), (maps.var(dim=(2, 3), correction=0) + 1e-6).sqrt()], dim=1)


@torch.no_grad()
@pytest.mark.parametrize(("gate_at", "decides"), [("stem", "stem"), ("block1", "block1"), (None, "block1")])
def test_who_is_far_is_who_is_far_by_mahalanobis_distance(
    conv_net: nn.Module,
    many: Batches,
    unseen: Tensor,
    whitened_scores: Callable[..., list[float]],
    gate_at: str | None,
    decides: str,
) -> None:
    robust = fit(conv_net, many, at="block1", alpha="auto", gate_at=gate_at, false_shift=0.1)
    held = [images[one_in_ten(image_keys(images))] for images, _, _ in many]
    domains = [phi(conv_net, decides, images[~one_in_ten(image_keys(images))]) for images, _, _ in many]
    falling = sorted(whitened_scores(domains, phi(conv_net, decides, torch.cat(held))), reverse=True)
    most = len(falling) // 10
    assert robust.alpha == pytest.approx((falling[most] + falling[most - 1]) / 2, rel=1e-4)
    seen = robust.explain(unseen)
    assert seen.score.tolist() == pytest.approx(whitened_scores(domains, phi(conv_net, decides, unseen)), rel=1e-4)
    assert torch.equal(seen.far, seen.score > robust.alpha)
    changed = (robust(unseen) != conv_net(unseen)).any(dim=1)
    assert torch.equal(changed, seen.far)
    assert robust.attaching.decided_at == decides


def test_far_at_the_gate_is_shifted_at_the_layer(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    assert robust.explain(unseen).far.tolist() == [False, False, True, True, True]
    torch.testing.assert_close(robust(unseen), by_hand(conv_net, robust, unseen))
    assert torch.equal(robust(unseen[:2]), conv_net(unseen[:2]))


def test_explain_tells_the_gates_score_and_the_shifts_nearest(
    conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor
) -> None:
    assert robust.gate is not None
    found, seen = features_at(conv_net, ["stem", "block1"], unseen), robust.explain(unseen)
    torch.testing.assert_close(seen.score, far_score(found["stem"], robust.gate.style, robust.gate.whitening))
    assert torch.equal(seen.far, seen.score > robust.alpha)
    own = phi(conv_net, "block1", unseen)
    assert torch.equal(seen.nearest, torch.cdist(own, robust.sources.style.phi.double()).argmin(dim=1))


def test_it_tells_what_was_chosen(robust: ShiftedModel) -> None:
    assert (robust.attaching.at, robust.attaching.gate_at) == ("block1", "stem")
    assert robust.calibration is not None
    assert robust.calibration.shifted <= robust.calibration.false_shift == 0.1
    assert robust.calibration.given is False
    assert robust.alpha > 0


def test_a_gate_with_a_number_is_that_number(conv_net: nn.Module, many: Batches, unseen: Tensor) -> None:
    robust = fit(conv_net, many, at="block1", alpha=2.5, gate_at="stem")
    assert (robust.alpha, robust.calibration) == (2.5, None)
    torch.testing.assert_close(robust(unseen), by_hand(conv_net, robust, unseen))


def test_a_gate_at_the_very_layer_is_as_without(conv_net: nn.Module, many: Batches, unseen: Tensor) -> None:
    same, plain = (fit(conv_net, many, at="block1", alpha=2.0, gate_at=gate) for gate in ("block1", None))
    assert same.attaching == plain.attaching
    assert torch.equal(same(unseen), plain(unseen))


def test_alpha_0_shifts_all_through_a_gate(conv_net: nn.Module, many: Batches, unseen: Tensor) -> None:
    gated, plain = (fit(conv_net, many, at="block1", alpha=0.0, gate_at=gate) for gate in ("stem", None))
    torch.testing.assert_close(gated(unseen), plain(unseen))


def test_auto_without_a_gate_decides_where_it_shifts(conv_net: nn.Module, many: Batches, unseen: Tensor) -> None:
    robust = fit(conv_net, many, at="block1", alpha="auto", holdout=[drawn(40, 9)], metric="euclidean")
    plain = ShiftedModel(conv_net, robust.sources, robust.alpha)
    assert robust.gate is None
    assert int(robust.explain(drawn(40, 9)).far.sum()) == 2
    assert torch.equal(robust(unseen), plain(unseen))


def test_auto_by_mahalanobis_has_a_gate_at_the_layer_that_shifts(
    conv_net: nn.Module, many: Batches, unseen: Tensor
) -> None:
    robust = fit(conv_net, many, at="block1", alpha="auto", holdout=[drawn(40, 9)])
    assert robust.gate is not None
    assert (robust.attaching.at, robust.attaching.gate_at, len(robust.gate.sample)) == ("block1", "block1", 0)
    assert int(robust.explain(drawn(40, 9)).far.sum()) == 2
    features = features_at(conv_net, ["block1"], unseen)["block1"]
    far = far_score(features, robust.gate.style, robust.gate.whitening) > robust.alpha
    assert 0 < far.sum() < 5
    shifted = shifted_as(Variant(), features, robust.sources.style, 0.0, far=far)
    logits = conv_net.head(conv_net.block2(shifted).mean(dim=(2, 3)))  # type: ignore[operator]  # modules
    torch.testing.assert_close(robust(unseen), logits)
    assert torch.equal(robust(unseen[~far]), conv_net(unseen[~far]))
    assert torch.equal(robust.train()(unseen), conv_net(unseen))


def test_all_has_no_gate_also_where_one_is_given(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    everything = ShiftedModel(conv_net, robust.sources, 3.0, Variant(everything=True), gate=robust.gate)
    assert (everything.gate, everything.attaching.gate_at) == (None, None)
    assert everything.explain(unseen).far.all()
    torch.testing.assert_close(everything(unseen), ShiftedModel(conv_net, robust.sources, 0.0)(unseen))


@pytest.mark.filterwarnings("ignore:shifting at no layer recovers")
@pytest.mark.parametrize("metric", ["mahalanobis", "euclidean"])
def test_layers_are_chosen_where_that_is_asked(
    conv_net: nn.Module, many: Batches, unseen: Tensor, metric: Metric
) -> None:
    robust = fit(conv_net, many, at="auto", alpha="auto", false_shift=0.1, gate_at="stem", metric=metric)
    assert robust.calibration is not None
    tried = [(one.gate_at, one.at, one.fraction) for one in robust.calibration.tried]
    row = ("relu", "block1")
    ways = [(("relu",), 1.0), (("block1",), 1.0), (row, 0.5), (row, 0.7)]
    assert sorted(tried) == sorted(("stem", at, fraction) for at, fraction in ways)
    best = robust.calibration.tried[0]
    assert (robust.attaching.gate_at, (robust.attaching.at, *robust.attaching.then)) == ("stem", best.at)
    same = fit(
        conv_net,
        many,
        at=best.at,
        alpha="auto",
        false_shift=0.1,
        gate_at="stem",
        metric=metric,
        variant=f"partial={best.fraction}",
    )
    assert same.alpha == robust.alpha
    assert torch.equal(robust(unseen), same(unseen))


# --- it goes on being a module


def test_in_train_mode_it_is_the_plain_model(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    assert torch.equal(robust.train()(unseen), conv_net(unseen))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_gives_the_same(
    robust: ShiftedModel, unseen: Tensor, copied: Callable[[ShiftedModel], ShiftedModel]
) -> None:
    wanted = robust(unseen)
    double = copied(robust)
    assert torch.equal(double(unseen), wanted)
    assert torch.equal(double.explain(unseen).far, robust.explain(unseen).far)
    assert torch.equal(robust(unseen), wanted)


def test_it_works_under_autocast_and_in_other_precisions(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(robust(unseen).float(), wanted, rtol=0.1, atol=0.1)
    torch.testing.assert_close(copy.deepcopy(robust).double()(unseen.double()), wanted.double(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(robust.bfloat16()(unseen.bfloat16()).float(), wanted, rtol=0.1, atol=0.1)


def test_in_half_precision_the_same_are_far(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust.explain(unseen).score
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(robust.explain(unseen).score, wanted, rtol=0.1, atol=0.1)
        assert robust.explain(unseen).far.tolist() == [False, False, True, True, True]
    for dtype in (torch.bfloat16, torch.float16):
        half = copy.deepcopy(robust).to(dtype)
        torch.testing.assert_close(half.explain(unseen.to(dtype)).score, wanted, rtol=0.1, atol=0.1)
        assert half.explain(unseen.to(dtype)).far.tolist() == [False, False, True, True, True]


def test_nothing_is_kept_of_a_forward_also_of_one_that_failed(robust: ShiftedModel, unseen: Tensor) -> None:
    assert robust.shifting.gate is not None
    robust(unseen)
    with pytest.raises(ValueError, match="seen none"):
        robust.shifting.gate.decided(unseen)
    with pytest.raises(RuntimeError):
        robust(unseen[:, :, :1, :1].double())
    with pytest.raises(ValueError, match="seen none"):
        robust.shifting.gate.decided(unseen)


def test_threads_get_right_answers_from_one_model(
    robust: ShiftedModel, unseen: Tensor, expect_same_in_threads: Callable[..., None]
) -> None:
    expect_same_in_threads(robust, (unseen, unseen.flip(0), unseen[2:3], unseen[:1]))


def test_it_compiles_to_one_graph_and_exports_with_a_dynamic_batch_and_refuses_another_word(
    plain_python: Callable[[str], str],
) -> None:
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
images = torch.randn(6, 3, 8, 8) * torch.tensor([1.0, 1, 3, 3, 20, 30])[:, None, None, None]
robust = styleshift.fit(model, [(images[:4], [0, 0, 1, 1])], at="layer1", alpha=2.0, gate_at="layer0")
batch = torch.export.Dim("batch", min=1, max=1024)
with torch.no_grad():
    assert not torch.allclose(robust(images), model(images))
    compiled = torch.compile(robust, backend="aot_eager", fullgraph=True)
    exported = torch.export.export(robust, (images,), dynamic_shapes=({0: batch},), strict=False).module()
    for some in (images, images[:3], images[:1]):
        torch.testing.assert_close(compiled(some), robust(some))
        torch.testing.assert_close(exported(some), robust(some))
for mistake in ({"alpha": "automatic"}, {"alpha": "auto", "metric": "cosine"}, {"metric": "cosine"}):
    try:
        styleshift.fit(model, [], at="layer1", **mistake)
    except ValueError as error:
        print(error)
""")
    assert said.splitlines() == [
        "alpha is at least 0 (0 shifts every sample; the paper takes 3), or 'auto' to find it; got automatic",
        "metric is one of mahalanobis, euclidean; got 'cosine'",
        "metric is one of mahalanobis, euclidean; got 'cosine'",
    ]


# --- the file


def test_its_file_gives_it_back(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor, tmp_path: Path) -> None:
    robust.save(tmp_path / "s")
    back = load(conv_net, tmp_path / "s")
    assert torch.equal(back(unseen), robust(unseen))
    assert (back.alpha, back.attaching, back.calibration) == (robust.alpha, robust.attaching, robust.calibration)
    assert torch.equal(back.explain(unseen).score, robust.explain(unseen).score)


@pytest.mark.filterwarnings("ignore:shifting at no layer recovers")
def test_what_was_tried_is_kept(conv_net: nn.Module, many: Batches, tmp_path: Path) -> None:
    robust = fit(conv_net, many, at="auto", alpha="auto", false_shift=0.1)
    robust.save(tmp_path / "s")
    back = load(conv_net, tmp_path / "s").calibration
    assert back == robust.calibration
    assert back is not None
    assert back.tried[0].at == (robust.attaching.at, *robust.attaching.then)


def version_of(path: Path) -> tuple[str, dict[str, object]]:
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    return about["version"], json.loads(about["header"])["shift"]


def test_a_file_without_a_gate_is_as_it_always_was(conv_net: nn.Module, many: Batches, tmp_path: Path) -> None:
    fit(conv_net, many, at="block1").save(tmp_path / "s")
    version, shift_facts = version_of(tmp_path / "s")
    assert version == "1"
    assert set(shift_facts) == {"alpha", "variant", "attaching", "seed", "origin"}
    assert shift_facts["attaching"] == {"at": "block1", "layout": "auto", "prefix_tokens": None, "calls": "every"}


@pytest.mark.parametrize(("metric", "version"), [("euclidean", "2"), ("mahalanobis", "3")])
@pytest.mark.parametrize("gate_at", ["stem", None])
def test_a_file_with_a_gate_is_of_the_next_version_and_one_with_a_whitening_of_the_one_after(
    conv_net: nn.Module, many: Batches, tmp_path: Path, metric: Metric, version: str, gate_at: str | None
) -> None:
    robust = fit(conv_net, many, at="block1", alpha="auto", gate_at=gate_at, false_shift=0.1, metric=metric)
    robust.save(tmp_path / "s")
    found, facts = version_of(tmp_path / "s")
    assert found == (version if robust.gate else "1")
    assert facts["attaching"] == {"at": "block1", "layout": "auto", "prefix_tokens": None, "calls": "every"}


def test_a_file_in_which_one_layer_a_way_was_tried_is_read(
    conv_net: nn.Module, many: Batches, unseen: Tensor, tmp_path: Path
) -> None:
    robust = fit(conv_net, many, at="block1", alpha="auto", gate_at="stem", false_shift=0.1, metric="euclidean")
    robust.save(tmp_path / "s")
    with safe_open(tmp_path / "s", framework="pt") as file:
        about = file.metadata()
        header = json.loads(about["header"])
    way = {"gate_at": "stem", "at": "block1", "alpha": 2.0, "shifted": 0.5, "recovered": 0.1, "looks": {"edges": 0.1}}
    header["shift"]["calibration"]["tried"] = [way]
    save_file(load_file(tmp_path / "s"), tmp_path / "s", {**about, "header": json.dumps(header)})
    back = load(conv_net, tmp_path / "s")
    assert back.calibration is not None
    assert [(one.at, one.fraction) for one in back.calibration.tried] == [(("block1",), 1.0)]
    assert torch.equal(back(unseen), robust(unseen))


def test_a_gate_that_was_cut_out_is_noticed(conv_net: nn.Module, robust: ShiftedModel, tmp_path: Path) -> None:
    robust.save(tmp_path / "s")
    with safe_open(tmp_path / "s", framework="pt") as file:
        about = file.metadata()
    tensors = load_file(tmp_path / "s")
    del tensors["gate.mean"]
    save_file(tensors, tmp_path / "s", about)
    with pytest.raises(ValueError, match="is damaged"):
        load(conv_net, tmp_path / "s")


# --- a caller's mistakes


@pytest.mark.parametrize("share", [0.0, 1.0, math.nan])
def test_a_share_that_is_none_is_refused(conv_net: nn.Module, share: float) -> None:
    with pytest.raises(ValueError, match="false_shift is the share"):
        fit(conv_net, untouchable(), at="block1", alpha="auto", false_shift=share)


def test_a_layer_is_not_chosen_at_a_fixed_alpha(conv_net: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"needs alpha='auto'; got alpha=3\.0"):
        fit(conv_net, untouchable(), at="auto")


@pytest.mark.parametrize("settings", [{"alpha": "auto"}, {"gate_at": "stem"}])
def test_all_has_nothing_to_decide(conv_net: nn.Module, settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="variant 'all' shifts every sample"):
        fit(conv_net, untouchable(), at="block1", variant="all", **settings)  # type: ignore[arg-type]  # of both kinds


def test_a_gate_behind_the_shift_is_refused(conv_net: nn.Module, many: Batches) -> None:
    with pytest.raises(ValueError, match="'block1' needs to be a layer that runs before 'stem'"):
        fit(conv_net, many, at="stem", gate_at="block1")


def test_a_gate_that_runs_twice_is_asked_which_time() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.next, self.last = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

        def forward(self, images: Tensor) -> Tensor:
            return self.last(self.next(self.block(self.block(images)))).square().mean(dim=(2, 3))

    model, batches = Twice().eval(), [(drawn(4, 0), [0, 0, 1, 1])]
    with pytest.raises(ValueError, match="'block' runs 2 times"):
        fit(model, batches, at="next", gate_at="block")
    robust = fit(model, batches, at="next", gate_at="block", calls="first", alpha=0.9)
    far = far_score(model.block(drawn(4, 1)), robust.gate.style) > 0.9  # type: ignore[union-attr]  # it has a gate
    assert torch.equal(robust.explain(drawn(4, 1)).far, far)
    changed = (robust(drawn(4, 1)) != model(drawn(4, 1))).any(dim=1)
    assert torch.equal(changed, far)


@pytest.mark.parametrize("at", ["block1", "auto"])
def test_a_gate_that_is_not_there_is_answered_with_near_ones(conv_net: nn.Module, many: Batches, at: str) -> None:
    with pytest.raises(KeyError, match=r"'blok1'.* did you mean one of \['block1'"):
        fit(conv_net, many, at=at, alpha="auto", gate_at="blok1")


def test_an_empty_holdout_is_said(conv_net: nn.Module, many: Batches) -> None:
    with pytest.raises(ValueError, match="`holdout` gave nothing"):
        fit(conv_net, many, at="block1", alpha="auto", holdout=iter([]))


def test_a_holdout_beside_a_number_is_refused(conv_net: nn.Module) -> None:
    with pytest.raises(ValueError, match="holdout= serves to find the threshold"):
        fit(conv_net, untouchable(), at="block1", holdout=[])


def test_a_metric_is_refused_where_alpha_is_a_number(conv_net: nn.Module, many: Batches) -> None:
    with pytest.raises(ValueError, match="metric= belongs to a threshold that is found"):
        fit(conv_net, many, at="block1", alpha=3.0, metric="mahalanobis")


def test_styles_that_were_whitened_decide_by_that(conv_net: nn.Module, many: Batches, unseen: Tensor) -> None:
    styles = sources_of(conv_net, many, "block1").whitened()
    robust = ShiftedModel(conv_net, styles, 1.5)
    found = features_at(conv_net, ["block1"], unseen)["block1"]
    torch.testing.assert_close(robust.explain(unseen).score, styles.scores(style_of(found).phi))
