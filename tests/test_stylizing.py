"""StyleTraining: which coins fall where, and that the model is as it came."""

import copy
import io
import pickle
from collections import Counter
from typing import Any

import pytest
import torch
from jaxtyping import TypeCheckError  # the tests' own check of types may come before ours
from torch import Tensor, nn

from styleshift import layers, named
from styleshift.backbones.resnet import ResNet
from styleshift.layers.dsu import DSU
from styleshift.layers.mixstyle import MixStyle
from styleshift.layers.style_balancing import StyleBalancing
from styleshift.stylizing import StyleTraining

BLOCKS = ("layer1", "layer2", "layer3")
DSU_POINTS = ("conv1", "maxpool", *BLOCKS, "layer4")


class Blocks(nn.Module):
    """A network with a ResNet's points, told apart by their widths; a scaling each, so one can follow it by hand."""

    def __init__(self) -> None:
        super().__init__()
        for width, name in enumerate(DSU_POINTS, start=2):
            setattr(self, name, Widen(width))

    def forward(self, images: Tensor) -> Tensor:
        for name in DSU_POINTS:
            images = getattr(self, name)(images)
        return images


class Widen(nn.Module):
    """Gives `width` channels, the last a mixture of what came."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.tensor(0.5))

    def forward(self, maps: Tensor) -> Tensor:
        more = (maps.mean(dim=1, keepdim=True) * self.weight).expand(-1, self.width - maps.shape[1], -1, -1)
        return torch.cat([maps, more], dim=1) if self.width > maps.shape[1] else maps * self.weight


class Noting(nn.Module):
    """An augmentation that notes the width of every point it acts at, and adds one."""

    def __init__(self, p: float = 0.25) -> None:
        super().__init__()
        self.p = p
        self.widths: list[int] = []

    def forward(self, features: Tensor) -> Tensor:
        if not self.training or float(torch.rand(())) >= self.p:
            return features
        self.widths.append(features.shape[1])
        return features + 1


WIDTH = {name: width for width, name in enumerate(DSU_POINTS, start=2)}


@pytest.fixture
def model() -> Blocks:
    return Blocks().train()


@pytest.fixture
def images() -> Tensor:
    return torch.randn(8, 1, 3, 3, generator=torch.Generator().manual_seed(0))


CLASSES = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
DOMAINS = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
EVEN = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7]), torch.zeros(8, dtype=torch.long)  # nothing to move


def coins(seed: int, points: int, forwards: int, p: float) -> list[list[bool]]:
    """What falls at every point of every forward, where nothing else is drawn."""
    generator = torch.Generator().manual_seed(seed)
    return [[float(torch.rand((), generator=generator)) < p for _ in range(points)] for _ in range(forwards)]


def noted_balancing(styler: StyleTraining) -> list[int]:
    """The widths of the points at which balancing acts, from now on."""
    widths: list[int] = []
    assert styler.balancing is not None
    styler.balancing.register_forward_hook(lambda layer, inputs, output: widths.append(inputs[0].shape[1]))
    return widths


def trained(styler: StyleTraining, model: nn.Module, images: Tensor, forwards: int = 1) -> list[Tensor]:
    answers = []
    for _ in range(forwards):
        with styler.batch(CLASSES, DOMAINS):
            answers.append(model(images).detach())
    return answers


# --- the coins


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_each_point_flips_its_own_coin_in_order(model: Blocks, images: Tensor, p: float) -> None:
    styler = StyleTraining(model, augment=Noting(), at=BLOCKS, balance=False, p=p, seed=7)
    trained(styler, model, images, 50)
    wanted = [WIDTH[name] for fell in coins(7, 3, 50, p) for name, success in zip(BLOCKS, fell, strict=True) if success]
    assert styler.augmentation.widths == wanted  # type: ignore[union-attr]
    assert styler.fired == len(wanted)


def test_balancing_acts_at_the_first_success_of_a_forward_alone(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=Noting(), at=BLOCKS, seed=3)
    balanced = noted_balancing(styler)
    with styler.batch(*EVEN):
        for _ in range(60):
            model(images)
    falls = coins(3, 3, 60, 0.5)
    assert balanced == [WIDTH[BLOCKS[fell.index(True)]] for fell in falls if any(fell)]
    assert styler.fired == sum(map(sum, falls))


def test_balancing_acts_in_a_half_a_quarter_and_an_eighth_of_the_forwards(model: Blocks) -> None:
    styler = StyleTraining(model, augment=None, seed=0)
    balanced = noted_balancing(styler)
    forwards = 400
    with styler.batch(EVEN[0][:2], EVEN[1][:2]):
        for _ in range(forwards):
            model(torch.zeros(2, 1, 1, 1))
    share = {width: count / forwards for width, count in Counter(balanced).items()}
    assert share == pytest.approx({WIDTH["layer1"]: 0.5, WIDTH["layer2"]: 0.25, WIDTH["layer3"]: 0.125}, abs=0.07)


def test_balancing_comes_before_the_augmentation(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=Noting(), at="layer1", p=1.0)
    order: list[str] = []
    assert styler.balancing is not None
    assert styler.augmentation is not None
    styler.balancing.register_forward_hook(lambda *seen: order.append("balancing"))
    styler.augmentation.register_forward_hook(lambda *seen: order.append("augmentation"))
    trained(styler, model, images)
    assert order == ["balancing", "augmentation"]


@pytest.mark.parametrize("augment", ["mixstyle", "efdmix", "dsu", None])
@pytest.mark.parametrize("balance", [True, False])
def test_a_forward_is_what_one_gets_by_hand_from_the_same_draws(
    model: Blocks, images: Tensor, augment: str | None, balance: bool
) -> None:
    styler = StyleTraining(model, at=BLOCKS, augment=augment, balance=balance, seed=11, n_domains=3)
    given = trained(styler, model, images, 6)
    styler.remove()

    generator = torch.Generator().manual_seed(11)
    layer = named.build(layers, augment, p=1.0, generator=generator) if augment else nn.Identity()
    balancing = StyleBalancing(3, generator=generator)
    for answer in given:
        features, is_balanced = images, not balance
        for name in DSU_POINTS:
            features = getattr(model, name)(features)
            if name in BLOCKS and float(torch.rand((), generator=generator)) < 0.5:
                if not is_balanced:
                    with balancing.given(CLASSES, DOMAINS):
                        features = balancing(features)
                    is_balanced = True
                features = layer(features)
        torch.testing.assert_close(answer, features.detach(), rtol=0, atol=0)
    assert any(not torch.equal(answer, model(images)) for answer in given) == (balance or augment is not None)


def test_p_is_the_only_coin(model: Blocks, images: Tensor) -> None:
    own = Noting(p=0.0)
    styler = StyleTraining(model, augment=own, at=BLOCKS, balance=False, p=1.0)
    trained(styler, model, images)
    assert styler.augmentation.widths == [WIDTH[name] for name in BLOCKS]  # type: ignore[union-attr]
    assert (own.p, own.widths) == (0.0, [])  # it was a copy


def test_the_coin_of_layers_inside_a_layer_is_off_too(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(
        model, augment=nn.Sequential(Noting(p=0.0), nn.Dropout(0.0)), at="layer1", balance=False, p=1.0
    )
    assert trained(styler, model, images)[0].abs().sum() > 0  # a Dropout(1.0) would leave nothing
    assert styler.augmentation[0].widths == [WIDTH["layer1"]]  # type: ignore[index]


def test_at_p_zero_nothing_happens(model: Blocks, images: Tensor) -> None:
    plain = model(images)
    styler = StyleTraining(model, p=0.0)
    assert all(torch.equal(answer, plain) for answer in trained(styler, model, images, 110))
    styler.remove()  # and nobody is warned


def test_nothing_is_drawn_from_the_global_generator(model: Blocks, images: Tensor) -> None:
    for augment in ("mixstyle", MixStyle(), DSU()):
        before = torch.get_rng_state()
        styler = StyleTraining(model, at=BLOCKS, augment=augment, p=1.0)
        trained(styler, model, images, 3)
        styler.remove()
        assert torch.equal(torch.get_rng_state(), before)


def test_seeds_reproduce_and_differ(images: Tensor) -> None:
    def run(seed: int, augment: str | nn.Module) -> Tensor:
        model = Blocks()
        return torch.stack(trained(StyleTraining(model, BLOCKS, augment, seed=seed), model, images, 8))

    for augment in ("mixstyle", MixStyle(alpha=0.3)):
        assert torch.equal(run(1, augment), run(1, augment))
        assert not torch.equal(run(1, augment), run(2, augment))


def test_eval_mode_draws_and_changes_nothing(model: Blocks, images: Tensor) -> None:
    plain = model(images)
    styler = StyleTraining(model, p=1.0)
    state = styler.state_dict()
    assert torch.equal(trained(styler, model.eval(), images)[0], plain)
    assert torch.equal(styler.state_dict()["generator"], state["generator"])
    assert (styler.fired, styler.forwards) == (0, 0)
    model.train()
    assert not torch.equal(trained(styler, model, images)[0], plain)


def test_a_layer_given_in_eval_mode_acts(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=Noting().eval(), at="layer1", balance=False, p=1.0)
    trained(styler, model, images)
    assert styler.augmentation.widths == [WIDTH["layer1"]]  # type: ignore[union-attr]


def test_gradients_reach_the_weights(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, p=1.0)
    with styler.batch(CLASSES, DOMAINS):
        model(images).square().mean().backward()
    assert all(weight.grad is not None and weight.grad.isfinite() for weight in model.parameters())


# --- the points


@pytest.mark.parametrize(
    ("augment", "points"), [("mixstyle", BLOCKS), ("efdmix", BLOCKS), (None, BLOCKS), ("dsu", DSU_POINTS)]
)
def test_left_out_points_are_the_published_ones(
    model: Blocks, images: Tensor, augment: str | None, points: tuple[str, ...]
) -> None:
    styler = StyleTraining(model, augment=augment, p=1.0)
    trained(styler, model, images)
    assert styler.fired == len(points)
    assert [name for name, part in model.named_modules() if name and part._forward_hooks] == list(points)


def test_a_layer_object_has_its_methods_published_points(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=DSU(), p=1.0)
    balanced = noted_balancing(styler)
    trained(styler, model, images)
    assert (styler.fired, balanced) == (6, [WIDTH["layer1"]])


def test_a_layer_of_ones_own_stands_after_the_blocks(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=Noting(), p=1.0)
    trained(styler, model, images)
    assert styler.augmentation.widths == [WIDTH[name] for name in BLOCKS]  # type: ignore[union-attr]


def test_a_models_own_points_come_first(model: Blocks, images: Tensor) -> None:
    model.points = {"mixstyle": ("layer4",)}  # type: ignore[assignment]
    styler = StyleTraining(model, p=1.0)
    trained(styler, model, images)
    assert styler.fired == 1


def test_a_models_points_of_another_meaning_are_none_of_ours(model: Blocks, images: Tensor) -> None:
    model.points = torch.zeros(3)
    styler = StyleTraining(model, p=1.0)
    trained(styler, model, images)
    assert styler.fired == 3


@pytest.mark.parametrize("at", [None, DSU_POINTS])
def test_of_dsus_points_only_those_after_blocks_carry_balancing(
    model: Blocks, images: Tensor, at: tuple[str, ...] | None
) -> None:
    styler = StyleTraining(model, at=at, augment="dsu", seed=5)
    balanced = noted_balancing(styler)
    with styler.batch(*EVEN):
        for _ in range(40):
            model(images)
    assert set(balanced) == {WIDTH[name] for name in BLOCKS}
    assert len(balanced) / 40 == pytest.approx(0.875, abs=0.15)


def test_all_of_dsus_points_may_carry_balancing_where_asked(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment="dsu", balance_at=DSU_POINTS, p=1.0)
    balanced = noted_balancing(styler)
    trained(styler, model, images, 2)
    assert balanced == [WIDTH["conv1"]] * 2


def test_a_resnet_trains_with_dsu() -> None:
    model = ResNet("18", classes=3).train()
    styler = StyleTraining(model, augment="dsu", p=1.0)
    with styler.batch(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 0, 1])):
        model(torch.randn(4, 3, 32, 32)).sum().backward()
    styler.remove()
    assert styler.fired == 6
    assert styler.balancing is not None
    assert styler.balancing.moved == 1
    assert model.conv1.weight.grad is not None
    assert model.conv1.weight.grad.isfinite().all()


def test_missing_published_points_ask_for_some() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    with pytest.raises(
        ValueError, match=r"mixstyle's published points are layer1, .*Sequential has no layer1, .*at=\("
    ):
        StyleTraining(model)
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


# --- the batch


def test_outside_a_batch_nothing_happens(model: Blocks, images: Tensor) -> None:
    plain = model(images)
    styler = StyleTraining(model, p=1.0)
    assert torch.equal(model(images), plain)
    trained(styler, model, images)
    assert torch.equal(model(images), plain)


def test_several_forwards_in_a_batch_balance_each(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, p=1.0)
    balanced = noted_balancing(styler)
    with styler.batch(CLASSES, DOMAINS):
        model(images)
        model(images)
    assert balanced == [WIDTH["layer1"]] * 2


def test_an_inner_batch_takes_over_and_gives_back(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, p=1.0, augment=None, n_domains=3)
    assert styler.balancing is not None
    with styler.batch(CLASSES, DOMAINS):
        with styler.batch(EVEN[0][:3], EVEN[1][:3]):
            model(images[:3])
        assert styler.balancing.moved == 0
        model(images)
    assert styler.balancing.moved == 3  # class 0: 4, 1, 0 -> 2, 2, 1, and class 1: 0, 1, 2 -> 1, 1, 1


def test_an_error_inside_the_block_ends_the_batch(model: Blocks, images: Tensor) -> None:
    plain = model(images)
    styler = StyleTraining(model, p=1.0)
    with pytest.raises(RuntimeError, match="on the way"), styler.batch(CLASSES, DOMAINS):
        raise RuntimeError("on the way")
    assert torch.equal(model(images), plain)
    assert not torch.equal(trained(styler, model, images)[0], plain)


def test_an_error_inside_a_forward_does_not_cost_the_next_its_balancing(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, p=1.0)
    balanced = noted_balancing(styler)
    with styler.batch(CLASSES, DOMAINS):
        with pytest.raises(ValueError, match="of 8 samples, the features of 5"):
            model(images[:5])
        model(images)
    assert balanced == [WIDTH["layer1"]]


@pytest.mark.parametrize(
    ("classes", "domains", "said"),
    [
        (CLASSES.float(), DOMAINS, "classes"),
        (CLASSES, DOMAINS[:, None], "domains"),
        (CLASSES, DOMAINS[:5], "domains"),
    ],
)
def test_labels_are_one_integer_a_sample(model: Blocks, classes: Any, domains: Any, said: str) -> None:
    styler = StyleTraining(model)
    with pytest.raises((ValueError, TypeCheckError), match=said), styler.batch(classes, domains):
        pass


def test_the_count_of_domains_is_the_largest_seen_also_where_no_coin_fell(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=None)
    assert styler.balancing is not None
    styler.p = 0.0
    trained(styler, model, images)  # domains 0, 1 and 2
    styler.p = 1.0
    with styler.batch(torch.zeros(8, dtype=torch.long), torch.zeros(8, dtype=torch.long)):
        model(images)
    # eight samples of one class in domain 0 of three: 8 -> 3, 3, 2, but nobody can lend a style
    assert (styler.balancing.moved, styler.balancing.dropped) == (0, 5)


def test_a_given_count_of_domains_is_taken(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, augment=None, p=1.0, n_domains=4)
    assert styler.balancing is not None
    with styler.batch(torch.zeros(8, dtype=torch.long), torch.zeros(8, dtype=torch.long)):
        model(images)
    assert styler.balancing.dropped == 6


def test_balancing_takes_its_settings(model: Blocks) -> None:
    styler = StyleTraining(model, selection="random", class_agnostic=True, n_domains=3)
    assert styler.balancing is not None
    assert (styler.balancing.selection, styler.balancing.class_agnostic) == ("random", True)


# --- state


def test_it_goes_on_exactly_from_a_saved_state(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, BLOCKS, MixStyle(), seed=9)
    trained(styler, model, images, 5)
    file = io.BytesIO()
    torch.save(styler.state_dict(), file)
    wanted = torch.stack(trained(styler, model, images, 5))

    file.seek(0)
    other_model = copy.deepcopy(model)
    other = StyleTraining(other_model, BLOCKS, MixStyle(), seed=1234)
    other.load_state_dict(torch.load(file))
    assert torch.equal(torch.stack(trained(other, other_model, images, 5)), wanted)
    assert (other.fired, other.forwards) == (styler.fired, styler.forwards)


def test_a_saved_state_stands_still(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model)
    state = styler.state_dict()
    kept = copy.deepcopy(state)
    trained(styler, model, images, 3)
    assert torch.equal(state["generator"], kept["generator"])
    assert {**state, "generator": 0} == {**kept, "generator": 0}


def test_domains_seen_are_part_of_the_state(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model)
    trained(styler, model, images)
    other = StyleTraining(copy.deepcopy(model))
    other.load_state_dict(styler.state_dict())
    assert other.balancing is not None
    assert other.balancing.seen_domains == 3


# --- what is left


def hooks(model: nn.Module) -> int:
    registers = [name for name in vars(model) if "hooks" in name]
    return sum(
        len(value) for part in model.modules() for name in registers if isinstance(value := vars(part)[name], dict)
    )


def test_removing_leaves_the_model_as_it_came(model: Blocks, images: Tensor) -> None:
    plain, state, names = model(images), copy.deepcopy(model.state_dict()), dict(model.named_modules()).keys()
    styler = StyleTraining(model, p=1.0)
    trained(styler, model, images, 2)
    assert model.state_dict().keys() == state.keys()
    assert dict(model.named_modules()).keys() == names
    styler.remove()
    assert hooks(model) == 0
    assert torch.equal(trained(styler, model, images)[0], plain)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())


def test_removing_twice_is_removing_once(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, p=1.0)
    with pytest.warns(UserWarning, match="no style layer acted in 0 training forwards"):
        styler.remove()
    styler.remove()
    assert hooks(model) == 0


def test_removing_leaves_other_hooks_alone(model: Blocks, images: Tensor) -> None:
    seen: list[int] = []
    model.get_submodule("layer1").register_forward_hook(lambda *hooked: seen.append(1))
    styler = StyleTraining(model, p=1.0)
    trained(styler, model, images)
    styler.remove()
    model(images)
    assert seen == [1, 1]


def test_copies_and_pickles_of_the_model_are_plain(images: Tensor) -> None:
    model = Blocks()
    plain = model(images)
    styler = StyleTraining(model, p=1.0)
    with styler.batch(CLASSES, DOMAINS):
        assert torch.equal(copy.deepcopy(model)(images), plain)
        assert torch.equal(pickle.loads(pickle.dumps(model))(images), plain)
    assert styler.forwards == 0


# --- nothing fired


def test_after_a_hundred_training_forwards_without_effect_it_says_so(model: Blocks, images: Tensor) -> None:
    StyleTraining(model)
    for _ in range(99):
        model(images)
    model.eval()(images)
    model.train()
    with pytest.warns(UserWarning, match=r"no style layer acted in 100 training forwards.*styler.batch"):
        model(images)
    for _ in range(5):
        model(images)  # said once: warnings are errors here


def test_who_fired_once_is_not_warned(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model, p=1.0)
    trained(styler, model, images)
    for _ in range(120):
        model(images)
    styler.remove()


def test_removing_before_anything_fired_says_so(model: Blocks, images: Tensor) -> None:
    styler = StyleTraining(model)
    model(images)
    with pytest.warns(UserWarning, match="in 1 training forwards"):
        styler.remove()
    assert hooks(model) == 0


# --- a caller's mistakes


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_p_is_a_probability(model: Blocks, p: float) -> None:
    with pytest.raises(ValueError, match=r"p is a probability, in \[0, 1\]"):
        StyleTraining(model, p=p)


def test_an_unknown_augmentation_is_answered_with_near_ones(model: Blocks) -> None:
    with pytest.raises(KeyError, match=r"did you mean one of .*mixstyle"):
        StyleTraining(model, augment="mixstil")


def test_an_augmentation_is_a_layer(model: Blocks) -> None:
    with pytest.raises((TypeError, TypeCheckError), match="augment"):
        StyleTraining(model, augment=MixStyle)  # type: ignore[arg-type]  # the class, not a layer


def test_balancing_stands_at_a_point(model: Blocks) -> None:
    with pytest.raises(ValueError, match=r"got \['conv1'\] in balance_at"):
        StyleTraining(model, at=BLOCKS, balance_at=("conv1",))


def test_a_wrong_point_is_answered_with_near_ones(model: Blocks) -> None:
    with pytest.raises(KeyError, match="'layer11'; did you mean"):
        StyleTraining(model, at=("layer1", "layer11"))
    assert hooks(model) == 0


def test_n_domains_is_at_least_one(model: Blocks) -> None:
    with pytest.raises(ValueError, match="n_domains is at least 1"):
        StyleTraining(model, n_domains=0)
    assert hooks(model) == 0


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # what torch.compile itself imports
def test_a_compiled_model_is_refused_as_one(model: Blocks) -> None:
    with pytest.raises(TypeError, match=r"it is compiled .* compile afterwards"):
        StyleTraining(torch.compile(model))
