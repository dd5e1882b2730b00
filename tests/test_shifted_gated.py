"""fit with alpha="auto", gate_at and at="auto": the model that comes of it, and its file."""

import copy
import json
import math
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from styleshift.attaching import features_at
from styleshift.shifted import ShiftedModel, fit, load
from styleshift.style.shifting import far_score, shift

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


@pytest.fixture
def robust(conv_net: nn.Module, many: Batches) -> ShiftedModel:
    return fit(conv_net, many, at="block1", alpha="auto", gate_at="stem", false_shift=0.1)


def untouchable() -> Iterator[object]:
    """Batches that nobody may read."""
    pytest.fail("an image was read before the settings were checked")
    yield


@torch.no_grad()
def by_hand(model: nn.Module, robust: ShiftedModel, images: Tensor) -> Tensor:
    """The shift at block1 of those that are far at the stem."""
    assert robust.gate is not None
    found = features_at(model, ["stem", "block1"], images)
    far = far_score(found["stem"], robust.gate.style) > robust.alpha
    shifted = shift(found["block1"], robust.sources.style, 0.0)
    features = torch.where(far[:, None, None, None], shifted, found["block1"])
    return model.get_submodule("head")(model.get_submodule("block2")(features).mean(dim=(2, 3)))


def test_far_at_the_gate_is_shifted_at_the_layer(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    assert robust.explain(unseen).far.tolist() == [False, False, True, True, True]
    torch.testing.assert_close(robust(unseen), by_hand(conv_net, robust, unseen))
    assert torch.equal(robust(unseen[:2]), conv_net(unseen[:2]))


def test_explain_tells_the_gates_score_and_the_shifts_nearest(
    conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor
) -> None:
    assert robust.gate is not None
    found, seen = features_at(conv_net, ["stem", "block1"], unseen), robust.explain(unseen)
    torch.testing.assert_close(seen.score, far_score(found["stem"], robust.gate.style))
    assert torch.equal(seen.far, seen.score > robust.alpha)
    phi = torch.cat(
        [found["block1"].mean(dim=(2, 3)), (found["block1"].var(dim=(2, 3), correction=0) + 1e-6).sqrt()], 1
    )
    assert torch.equal(seen.nearest, torch.cdist(phi, robust.sources.style.phi).argmin(dim=1))


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
    robust = fit(conv_net, many, at="block1", alpha="auto", holdout=[drawn(40, 9)])
    plain = ShiftedModel(conv_net, robust.sources, robust.alpha)
    assert robust.gate is None
    assert int(robust.explain(drawn(40, 9)).far.sum()) == 2
    assert torch.equal(robust(unseen), plain(unseen))


@pytest.mark.filterwarnings("ignore:shifting at no layer recovers")
def test_layers_are_chosen_where_that_is_asked(conv_net: nn.Module, many: Batches, unseen: Tensor) -> None:
    robust = fit(conv_net, many, at="auto", alpha="auto", false_shift=0.1, gate_at="stem")
    assert (robust.attaching.at, robust.attaching.gate_at) == ("block1", "stem")
    assert robust.calibration is not None
    assert [(one.gate_at, one.at) for one in robust.calibration.tried] == [("stem", "block1")]
    torch.testing.assert_close(robust(unseen), by_hand(conv_net, robust, unseen))


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


def test_nothing_is_kept_of_a_forward_also_of_one_that_failed(robust: ShiftedModel, unseen: Tensor) -> None:
    assert robust.shifting.gate is not None
    robust(unseen)
    with pytest.raises(ValueError, match="seen none"):
        robust.shifting.gate.decided(unseen)
    with pytest.raises(RuntimeError):
        robust(unseen[:, :, :1, :1].double())
    with pytest.raises(ValueError, match="seen none"):
        robust.shifting.gate.decided(unseen)


def test_threads_get_right_answers_from_one_model(robust: ShiftedModel, unseen: Tensor) -> None:
    parts = (unseen, unseen.flip(0), unseen[2:3], unseen[:1])
    with torch.no_grad():
        wanted = [robust(part) for part in parts]
    wrong: list[BaseException] = []

    def run(part: Tensor, answer: Tensor) -> None:
        try:
            with torch.no_grad():
                for _ in range(20):
                    torch.testing.assert_close(robust(part), answer)
        except (AssertionError, ValueError) as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in zip(parts, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


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
try:
    styleshift.fit(model, [], at="layer1", alpha="automatic")
except ValueError as error:
    print(error)
""")
    assert said.endswith("or 'auto' to find it; got automatic\n")


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
    assert back.tried[0].at == "block1"


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


def test_a_file_with_a_gate_is_of_the_next_version(robust: ShiftedModel, tmp_path: Path) -> None:
    robust.save(tmp_path / "s")
    assert version_of(tmp_path / "s")[0] == "2"


def test_a_gate_that_was_cut_out_is_noticed(conv_net: nn.Module, robust: ShiftedModel, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

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
    with pytest.raises(ValueError, match="gate_at='block1' needs to be a layer that runs before at='stem'"):
        fit(conv_net, many, at="stem", gate_at="block1")


def test_a_gate_that_runs_twice_is_asked_which_time() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.next, self.last = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

        def forward(self, images: Tensor) -> Tensor:
            return self.last(self.next(self.block(self.block(images)))).square().mean(dim=(2, 3))

    model, batches = Twice().eval(), [(drawn(4, 0), [0, 0, 1, 1])]
    with pytest.raises(ValueError, match="gate_at='block' runs 2 times"):
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
