"""fit, and the model that shifts."""

import copy
import math
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import styleshift
from styleshift.shifted import ShiftedModel, fit

Batches = list[tuple[Tensor, Tensor, list[str]]]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def robust(conv_net: nn.Module, batches: Batches) -> ShiftedModel:
    return fit(conv_net, batches, at="block1", alpha=2.0)


def by_hand(
    model: Any, batches: Batches, images: Tensor, alpha: float, fraction: float = 1.0
) -> tuple[Tensor, list[float]]:
    """The logits and scores of Algorithm 2, step by step in float64, one sample at a time."""
    model = copy.deepcopy(model).double().eval()

    def block1(some: Tensor) -> Tensor:
        return model.block1(model.relu(model.stem(some.double())))

    def style(maps: Tensor) -> Tensor:
        return torch.cat([maps.mean(dim=(1, 2)), (maps.var(dim=(1, 2), unbiased=False) + 1e-6).sqrt()])

    with torch.no_grad():
        centres = torch.stack(
            [torch.stack([style(maps) for maps in block1(some)]).mean(dim=0) for some, _, _ in batches]
        )
        middle = centres.mean(dim=0)
        spread = sum(float((centre - middle).norm()) for centre in centres) / len(centres)
        rows, scores = [], []
        for maps in block1(images):
            own = style(maps)
            gaps = [float((own - centre).norm()) for centre in centres]
            scores.append(sum(gaps) / len(gaps) / spread if spread else math.inf)
            if scores[-1] > alpha:
                goal = own + fraction * (centres[gaps.index(min(gaps))] - own)
                (mean, std), (new_mean, new_std) = own.chunk(2), goal.chunk(2)
                maps = (maps - mean[:, None, None]) / std[:, None, None] * new_std[:, None, None] + new_mean[
                    :, None, None
                ]
            rows.append(model.head(model.block2(maps[None]).mean(dim=(2, 3)))[0])
    return torch.stack(rows), scores


def expect_close(given: Tensor, wanted: Tensor, within: float = 1e-4) -> None:
    torch.testing.assert_close(given.double(), wanted.double(), rtol=within, atol=within)


# --- what it computes


@pytest.mark.parametrize("alpha", [0.0, 2.0, 1e6])
def test_it_gives_what_the_model_gives_with_the_shift_in_between(
    conv_net: nn.Module, batches: Batches, unseen: Tensor, alpha: float
) -> None:
    expect_close(fit(conv_net, batches, at="block1", alpha=alpha)(unseen), by_hand(conv_net, batches, unseen, alpha)[0])


def test_the_test_images_are_two_near_and_three_far(robust: ShiftedModel, unseen: Tensor) -> None:
    assert robust.explain(unseen).far.tolist() == [False, False, True, True, True]


def test_near_images_get_the_very_logits_of_the_model(
    conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor
) -> None:
    assert torch.equal(robust(unseen[:2]), conv_net(unseen[:2]))


def test_it_starts_with_the_papers_alpha(conv_net: nn.Module, batches: Batches) -> None:
    assert fit(conv_net, batches, at="block1").alpha == 3.0


def test_one_image_gives_its_row_of_the_batch(robust: ShiftedModel, unseen: Tensor) -> None:
    together = robust(unseen)
    for row, image in enumerate(unseen):
        expect_close(robust(image[None])[0], together[row], within=1e-5)


def test_an_empty_batch_gives_an_empty_answer(robust: ShiftedModel) -> None:
    assert robust(torch.zeros(0, 3, 16, 16)).shape == (0, 5)


def test_one_source_shifts_everything(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    robust = fit(conv_net, batches[:1], at="block1")
    assert robust.explain(unseen).score.tolist() == [math.inf] * 5
    expect_close(robust(unseen), by_hand(conv_net, batches[:1], unseen, 3.0)[0])


def test_one_image_in_all_is_source_enough(conv_net: nn.Module, unseen: Tensor) -> None:
    robust = fit(conv_net, [(unseen[:1], [0])], at="block1")
    expect_close(robust(unseen[:1]), conv_net(unseen[:1]))  # its own style is the nearest


def test_gradients_reach_the_images_and_the_weights(robust: ShiftedModel, unseen: Tensor) -> None:
    unseen.requires_grad_()
    robust(unseen).square().sum().backward()
    assert unseen.grad is not None
    assert unseen.grad.isfinite().all()
    assert all(weight.grad is not None for weight in robust.parameters())


# --- the model stays plain


def test_the_model_itself_stays_plain(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    before = conv_net(unseen)
    names = list(conv_net.state_dict())
    robust = fit(conv_net, batches, at="block1", alpha=0.0)
    assert torch.equal(conv_net(unseen), before)
    assert not torch.equal(robust(unseen), before)
    assert torch.equal(conv_net(unseen), before)
    assert list(conv_net.state_dict()) == names
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in conv_net.modules())


def test_a_training_model_stays_in_train_mode(conv_net: nn.Module, batches: Batches) -> None:
    conv_net.train()
    robust = fit(conv_net, batches, at="block1")
    assert all(part.training for part in conv_net.modules())
    assert not robust.training


def test_weights_are_shared(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    before = robust(unseen)
    with torch.no_grad():
        conv_net.head.bias.add_(1.0)  # type: ignore[union-attr]  # the fixture's head is linear
    expect_close(robust(unseen), before + 1)
    assert {id(weight) for weight in conv_net.parameters()} == {id(weight) for weight in robust.parameters()}


def test_training_the_model_is_seen(
    conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor
) -> None:
    optimizer = torch.optim.SGD(conv_net.parameters(), lr=0.1)
    conv_net(unseen).sum().backward()
    optimizer.step()
    features = conv_net.block1(conv_net.relu(conv_net.stem(unseen)))  # type: ignore[operator]
    shifted = styleshift.shift(features, robust.sources.style, 2.0)
    expect_close(robust(unseen), conv_net.head(conv_net.block2(shifted).mean(dim=(2, 3))))  # type: ignore[operator]


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run jobs at once; the first error is raised here."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        try:
            start.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def repeatedly(model: nn.Module, images: Tensor) -> Callable[[], None]:
    """A job that wants the same answer forty times."""
    with torch.no_grad():
        wanted = model(images)

    def job() -> None:
        with torch.no_grad():
            for _ in range(40):
                torch.testing.assert_close(model(images), wanted)

    return job


def test_the_model_stays_plain_while_another_thread_shifts(
    conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor
) -> None:
    in_threads(repeatedly(conv_net, unseen), repeatedly(robust, unseen))


def test_two_threads_get_right_answers_from_one_shifted_model(robust: ShiftedModel, unseen: Tensor) -> None:
    in_threads(repeatedly(robust, unseen), repeatedly(robust, unseen.flip(0) * 2), repeatedly(robust, unseen[2:3]))


def test_explaining_in_another_thread_disturbs_nothing(robust: ShiftedModel, unseen: Tensor) -> None:
    def explain() -> None:
        for _ in range(10):
            assert robust.explain(unseen).far.sum() == 3

    in_threads(explain, repeatedly(robust, unseen), explain)


# --- explain


def test_explain_gives_the_scores_of_equation_7(
    conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor
) -> None:
    seen = robust.explain(unseen)
    expect_close(seen.score, torch.tensor(by_hand(conv_net, batches, unseen, 2.0)[1]))
    assert torch.equal(seen.far, seen.score > 2.0)
    assert seen.domains == ("art", "cartoon", "photo")


def test_explain_names_the_nearest_source(robust: ShiftedModel, batches: Batches) -> None:
    for row, (images, _, domains) in enumerate(batches):
        nearest = robust.explain(images).nearest
        assert nearest.mode().values == row
        assert robust.explain(images).domains[row] == domains[0]


def test_explain_calls_everything_far_where_everything_is_shifted(
    conv_net: nn.Module, batches: Batches, unseen: Tensor
) -> None:
    assert fit(conv_net, batches, at="block1", alpha=1e6, variant="all").explain(unseen).far.all()


def test_far_is_strict(conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor) -> None:
    score = float(robust.explain(unseen).score[3])
    at_it = ShiftedModel(conv_net, robust.sources, score)
    below = ShiftedModel(conv_net, robust.sources, math.nextafter(score, 0) - 1e-6)
    assert not at_it.explain(unseen).far[3]
    assert below.explain(unseen).far[3]


def test_explain_says_in_train_mode_what_eval_mode_would_do(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust.explain(unseen).score
    assert torch.equal(robust.train().explain(unseen).score, wanted)
    assert robust.training


def test_explain_leaves_the_shift_in_place(robust: ShiftedModel, unseen: Tensor) -> None:
    before = robust(unseen)
    robust.explain(unseen)
    assert torch.equal(robust(unseen), before)


# --- modes, copies, moves


def test_it_is_the_plain_model_in_train_mode(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    shifted = robust(unseen)
    assert torch.equal(robust.train()(unseen), conv_net(unseen))
    assert torch.equal(robust.eval()(unseen), shifted)


def test_a_deep_copy_shifts_and_is_on_its_own(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    double = copy.deepcopy(copy.deepcopy(robust))
    assert torch.equal(double(unseen), wanted)
    with torch.no_grad():
        double.model.head.bias.add_(1.0)
    assert torch.equal(robust(unseen), wanted)
    expect_close(double(unseen), wanted + 1)


def test_a_pickled_model_shifts(robust: ShiftedModel, unseen: Tensor) -> None:
    double = pickle.loads(pickle.dumps(robust))
    assert torch.equal(double(unseen), robust(unseen))
    assert double.explain(unseen).domains == robust.sources.domains


def test_a_shallow_copy_leaves_the_original_as_it_was(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    double = copy.copy(robust)
    assert torch.equal(double(unseen), wanted)
    assert torch.equal(robust(unseen), wanted)


def test_copies_of_copies_collect_no_hooks(robust: ShiftedModel) -> None:
    def hooks(model: nn.Module) -> int:
        return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())

    assert hooks(pickle.loads(pickle.dumps(copy.deepcopy(copy.deepcopy(robust))))) == hooks(robust)


def test_its_state_dict_goes_in_and_out(
    conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor
) -> None:
    wanted = robust(unseen)
    state = copy.deepcopy(robust.state_dict())
    assert {name.removeprefix("model.") for name in state if name.startswith("model.")} == set(conv_net.state_dict())
    other = fit(
        copy.deepcopy(conv_net), [(some * 3, kinds, names) for some, kinds, names in batches], at="block1", alpha=2.0
    )
    assert not torch.equal(other(unseen), wanted)
    other.load_state_dict(state)
    assert torch.equal(other(unseen), wanted)


def test_it_moves_to_double_with_the_model(
    conv_net: nn.Module, batches: Batches, robust: ShiftedModel, unseen: Tensor
) -> None:
    wanted, _ = by_hand(conv_net, batches, unseen, 2.0)
    given = robust.double()(unseen.double())
    assert given.dtype == torch.float64
    expect_close(given, wanted, within=1e-6)


def test_moving_the_model_alone_is_enough(conv_net: nn.Module, robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    conv_net.double()
    expect_close(robust(unseen.double()), wanted)
    assert robust.explain(unseen.double()).far.sum() == 3


def test_it_moves_to_bfloat16(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    given = robust.bfloat16()(unseen.bfloat16())
    assert given.dtype == torch.bfloat16
    expect_close(given, wanted, within=0.1)


def test_it_works_under_autocast(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    with torch.autocast("cpu", torch.bfloat16):
        given = robust(unseen)
        seen = robust.explain(unseen)
    expect_close(given, wanted, within=0.1)
    assert seen.score.dtype == torch.float32
    assert seen.far.sum() == 3


def test_it_keeps_channels_last(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    robust.to(memory_format=torch.channels_last)
    expect_close(robust(unseen.to(memory_format=torch.channels_last)), wanted)


def test_it_runs_in_inference_mode(robust: ShiftedModel, unseen: Tensor) -> None:
    wanted = robust(unseen)
    with torch.inference_mode():
        assert torch.equal(robust(unseen), wanted)


_SCRIPT = """
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
robust = styleshift.fit(model, [(images[:4], [0, 0, 1, 1])], at="layer1", alpha=2.0)
with torch.no_grad():
    wanted = robust(images)
    assert not torch.allclose(wanted, model(images))
    assert 0 < robust.explain(images).far.sum() < 6
"""


def test_it_compiles_to_one_graph(plain_python: Callable[[str], str]) -> None:
    code = """
with torch.no_grad():
    compiled = torch.compile(robust, backend="aot_eager", fullgraph=True)
    for some in (images, images[:3], images[:1]):
        torch.testing.assert_close(compiled(some), robust(some))
print("fine")
"""
    assert plain_python(_SCRIPT + code) == "fine\n"


def test_it_exports_with_a_dynamic_batch(plain_python: Callable[[str], str]) -> None:
    code = """
batch = torch.export.Dim("batch", min=1, max=1024)
exported = torch.export.export(robust, (images,), dynamic_shapes=({0: batch},), strict=False).module()
with torch.no_grad():
    for some in (images, images[:3], images[:1]):
        torch.testing.assert_close(exported(some), robust(some))
print("fine")
"""
    assert plain_python(_SCRIPT + code) == "fine\n"


# --- variants


def test_a_partial_shift_goes_part_of_the_way(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    robust = fit(conv_net, batches, at="block1", alpha=2.0, variant="partial=0.3")
    expect_close(robust(unseen), by_hand(conv_net, batches, unseen, 2.0, fraction=0.3)[0])


def test_all_shifts_near_images_too(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    robust = fit(conv_net, batches, at="block1", alpha=1e6, variant="all")
    expect_close(robust(unseen), by_hand(conv_net, batches, unseen, alpha=-1.0)[0])


def test_sampled_goes_to_training_images(conv_net: nn.Module, batches: Batches) -> None:
    robust = fit(conv_net, batches, at="block1", alpha=0.0, variant="sampled=1000")
    images = batches[1][0]
    # every training image's own style is among the samples, so it stays what it is
    expect_close(robust(images), conv_net(images))


def test_sampled_follows_the_seed(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    one, same, other = (
        fit(conv_net, batches, at="block1", alpha=0.0, variant="sampled=2", seed=seed)(unseen) for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_soft_at_temperature_zero_is_nearest(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    soft = fit(conv_net, batches, at="block1", alpha=2.0, variant="soft=1e-6")
    expect_close(soft(unseen), fit(conv_net, batches, at="block1", alpha=2.0)(unseen))


# --- without domain labels


def test_clusters_need_images_alone(conv_net: nn.Module, batches: Batches, unseen: Tensor) -> None:
    alone = fit(conv_net, [images for images, _, _ in batches], at="block1", clusters=3, alpha=2.0)
    labelled = fit(conv_net, batches, at="block1", clusters=3, alpha=2.0)
    assert alone.sources.domains == ("cluster 1", "cluster 2", "cluster 3")
    assert torch.equal(alone(unseen), labelled(unseen))


def test_clusters_find_the_domains(conv_net: nn.Module, batches: Batches, robust: ShiftedModel) -> None:
    clustered = fit(conv_net, [images for images, _, _ in batches], at="block1", clusters=3)
    assert clustered.sources.counts.tolist() == [6, 6, 6]
    distances = torch.cdist(clustered.sources.style.phi, robust.sources.style.phi)
    assert distances.min(dim=1).values.max() < 1e-5


def test_images_alone_ask_for_clusters(conv_net: nn.Module, unseen: Tensor) -> None:
    with pytest.raises(ValueError, match="clusters="):
        fit(conv_net, [unseen], at="block1")


# --- other kinds of network


class Tokens(nn.Module):
    """A ViT in small: one class token before sixteen patch tokens."""

    num_prefix_tokens = 1

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 4, stride=4)
        self.cls_token = nn.Parameter(drawn(1, 1, 6))
        self.block = nn.Linear(6, 6)
        self.mix = nn.Linear(6, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        tokens = self.block(torch.cat([self.cls_token.expand(len(images), -1, -1), patches], dim=1))
        return self.after(tokens)

    def after(self, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.mix(tokens)).mean(dim=1))


def test_tokens_are_shifted_over_their_patches(unseen: Tensor) -> None:
    model = Tokens().eval()
    robust = fit(model, [(unseen[:2], [0, 1])], at="block", alpha=0.0)

    tokens = model.block(
        torch.cat([model.cls_token.expand(5, -1, -1), model.patches(unseen).flatten(2).transpose(1, 2)], dim=1)
    )
    patches = tokens[:, 1:].transpose(1, 2).unsqueeze(-1)
    sources = styleshift.style_of(patches[:2])
    shifted = styleshift.shift(patches, sources, alpha=0.0).squeeze(-1).transpose(1, 2)
    expect_close(robust(unseen), model.after(torch.cat([tokens[:, :1], shifted], dim=1)))


class Paired(nn.Module):
    """A network whose block gives its maps and something else."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> tuple[Tensor, str]:
            return self.conv(images), "else"

    def __init__(self) -> None:
        super().__init__()
        self.block = Paired.Block()
        self.conv = nn.Conv2d(4, 4, 3)

    def forward(self, images: Tensor) -> tuple[Tensor, str]:
        maps, more = self.block(images)
        return self.conv(maps).square().mean(dim=(2, 3)), more


def test_the_first_of_a_tuple_is_shifted_and_the_rest_comes_through(unseen: Tensor) -> None:
    model = Paired().eval()
    robust = fit(model, [(unseen[:2], [0, 1])], at="block", alpha=0.0)
    maps = model.block.conv(unseen)
    shifted = styleshift.shift(maps, styleshift.style_of(maps[:2]), alpha=0.0)
    logits, more = robust(unseen)
    expect_close(logits, model.conv(shifted).square().mean(dim=(2, 3)))
    assert more == "else"


class Twice(nn.Module):
    """A network whose block runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Conv2d(3, 3, 3, padding=1)
        self.last = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.block(self.block(images))).square().mean(dim=(2, 3))


def test_a_layer_that_runs_twice_is_said(unseen: Tensor) -> None:
    with pytest.warns(UserWarning, match="'block' runs 2 times .* calls='first'"):
        fit(Twice(), [(unseen, [0, 0, 1, 1, 1])], at="block")


def test_the_first_call_alone_can_be_shifted(unseen: Tensor) -> None:
    model = Twice().eval()
    robust = fit(model, [(unseen[:2], [0, 1])], at="block", alpha=0.0, calls="first")
    maps = model.block(unseen)
    shifted = styleshift.shift(maps, styleshift.style_of(maps[:2]), alpha=0.0)
    expect_close(robust(unseen), model.last(model.block(shifted)).square().mean(dim=(2, 3)))
    expect_close(robust(unseen), robust(unseen))  # and again at the next forward


def test_what_is_no_tensor_no_name_and_no_mapping_is_refused_in_words(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import torch
import styleshift
model = styleshift.backbone("smallnet")
batches = [(torch.randn(4, 3, 8, 8), [0, 1, 0, 1])]
robust = styleshift.fit(model, batches, at="layer1")
for mistake in (
    lambda: robust([1.0]),
    lambda: robust.explain(torch.ones(1, 3, 8, 8).numpy()),
    lambda: styleshift.fit(model, batches, at=2),
    lambda: styleshift.fit(model, batches, at=("layer1", 2)),
    lambda: styleshift.attach(model, ["layer1"]),
):
    try:
        mistake()
    except TypeError as error:
        print(error)
""").splitlines()
    assert said == [
        "images are a tensor [B, C, H, W]; got list. Use torch.as_tensor(images).",
        "images are a tensor [B, C, H, W]; got ndarray. Use torch.as_tensor(images).",
        "A module is named by a string, as in 'layer2'; got 2.",
        "A module is named by a string, as in 'layer2'; got 2.",
        "layers says which layer follows which module, as in {'layer1': layer}; got ['layer1'].",
    ]
