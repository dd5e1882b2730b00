"""The grammar of test-time rows, and the models it stands for."""

import pytest
import torch
from torch import Tensor, nn

from styleshift import adaptation, named
from styleshift.adaptation.bn_stats import BNStats
from styleshift.adaptation.conststyle import ConstStyle
from styleshift.adaptation.sar import SAR
from styleshift.adaptation.t3a import FILTERS, T3A
from styleshift.adaptation.tent import Tent
from styleshift.backbones.building import network
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles, sources_of
from styleshift.style.shifting import Variant
from styleshift.training.adapted_rows import QUICK, WORDS, AdaptedRow, layers_of, row_of, wrapped
from styleshift.training.variants import ShiftRow, shift_row

TS = shift_row("ts", "layer2")


@pytest.mark.parametrize("name", ["none", "ts", "ts:all", "ts:at=layer1,alpha=2"])
def test_a_shift_means_what_it_means_elsewhere(name: str) -> None:
    assert row_of(name, "layer2") == shift_row(name, "layer2")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("tent", AdaptedRow("tent", "tent", Tent(), None, None)),
        ("tent:learning_rate=0.1,steps=2", AdaptedRow("", "tent", Tent(0.1, 2), None, None)),
        ("t3a:filter=5", AdaptedRow("", "t3a", T3A(5), None, None)),
        ("t3a:filter=all", AdaptedRow("", "t3a", T3A("all"), None, None)),
        ("bn_stats:share=1", AdaptedRow("", "bn_stats", BNStats(1.0), None, None)),
        ("sar:skip=layer3", AdaptedRow("", "sar", SAR(skip=("layer3",)), None, None)),
        ("sar:skip=layer3/layer4", AdaptedRow("", "sar", SAR(skip=("layer3", "layer4")), None, None)),
        ("conststyle", AdaptedRow("", "conststyle", ConstStyle(), "layer2", None)),
        ("conststyle:at=layer1,fraction=0.8", AdaptedRow("", "conststyle", ConstStyle(0.8), "layer1", None)),
        ("ts+tent", AdaptedRow("", "tent", Tent(), None, TS)),
        ("ts:all,at=layer1+t3a:filter=1", AdaptedRow("", "t3a", T3A(1), None, shift_row("ts:all", "layer1"))),
    ],
)
def test_a_name_means_a_method_with_its_settings(name: str, row: AdaptedRow) -> None:
    found = row_of(name, "layer2")
    assert isinstance(found, AdaptedRow)
    assert (found.method, found.build, found.at) == (row.method, row.build, row.at)
    assert (found.shift is None) == (row.shift is None)
    if found.shift and row.shift:
        assert (found.shift.at, found.shift.alpha, found.shift.variant) == (row.shift.at, 3.0, row.shift.variant)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("tent", "tent"),
        ("t3a:filter=100", "t3a"),
        ("t3a:filter=all", "t3a:filter=all"),
        ("tent:steps=2,learning_rate=0.01", "tent:learning_rate=0.01,steps=2"),
        ("sar:skip=layer3/layer4", "sar:skip=layer3/layer4"),
        ("conststyle", "conststyle:at=layer2"),
        ("ts+tent", "ts:at=layer2,alpha=3+tent"),
        ("ts:partial=0.5,alpha=2+t3a:filter=1", "ts:at=layer2,alpha=2,partial=0.5+t3a:filter=1"),
    ],
)
def test_a_complete_name_says_all_that_is_not_the_default_and_means_the_same(written: str, name: str) -> None:
    found = row_of(written, "layer2")
    assert found.name == name
    again = row_of(name, "layer9", alpha=9.0)
    assert isinstance(found, AdaptedRow)
    assert isinstance(again, AdaptedRow)
    assert (again.build, again.at, again.layer, again.name) == (found.build, found.at, found.layer, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tnet", "nothing at test time is called 'tnet': it is none, ts, tent, or ts"),
        ("ts+tnet", "nothing at test time is called"),
        ("tent+ts", "nothing at test time is called"),
        ("style_shift", "nothing at test time is called"),
        ("tent:rate=1", "in 'tent:rate=1': 'tent' has no setting 'rate'; its settings are learning_rate, steps, norms"),
        ("tent:steps=two", "in 'tent:steps=two': steps is a number; got 'two'"),
        ("tent:steps", "a setting is NAME=VALUE, joined by commas; got 'steps'"),
        ("t3a:filter=0", "in 't3a:filter=0': filter is how many"),
        ("t3a:filter=some", "filter is a number; got 'some'"),
        ("tent:learning_rate=-1", "in 'tent:learning_rate=-1': learning_rate is a number of at least 0; got -1.0"),
        ("memo:learning_rate=nan", "learning_rate is a number of at least 0; got nan"),
        ("sar:momentum=-0.5", "momentum is a number of at least 0; got -0.5"),
        ("eata:learning_rate=inf", "learning_rate is a number of at least 0; got inf"),
        ("none+tent", "a method around a shift is written ts"),
        ("ts+conststyle", "conststyle shifts by itself"),
    ],
)
def test_a_wrong_name_is_explained(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        row_of(name, "layer2")


def test_every_method_has_a_name_here() -> None:
    assert set(WORDS) == set(named.names(adaptation)) - {"style_shift"}
    assert {row_of(name, "layer2").name for name in (*WORDS, *QUICK)}
    assert all(isinstance(row_of(f"t3a:filter={keep}", "layer2"), AdaptedRow) for keep in FILTERS)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return network("smallnet", 4).eval()


@pytest.fixture(scope="module")
def styles(model: nn.Module) -> dict[str, SourceStyles]:
    return {"layer2": sources_of(model, [(images(), [0, 1, 2] * 2)], "layer2")}


def images() -> Tensor:
    return torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0)) * 2


def test_none_is_the_model_as_it_is(model: nn.Module, styles: dict[str, SourceStyles]) -> None:
    found = wrapped(row_of("none", "layer2"), model, {})
    assert torch.equal(found(images()), model(images()))
    assert not any(vars(found.sees).values())


def test_a_shift_is_the_model_that_shifts(model: nn.Module, styles: dict[str, SourceStyles]) -> None:
    found = wrapped(row_of("ts:alpha=0", "layer2"), model, styles)
    assert torch.equal(found(images()), ShiftedModel(model, styles["layer2"], 0.0)(images()))
    assert found.sees.source_styles


def test_a_method_around_a_shift_sees_what_both_see(model: nn.Module, styles: dict[str, SourceStyles]) -> None:
    found = wrapped(row_of("ts:alpha=0+tent", "layer2"), model, styles)
    expected = Tent().wrap(ShiftedModel(model, styles["layer2"], 0.0))
    assert torch.equal(found(images()), expected(images()))
    assert found.sees.source_styles
    assert found.sees.updates_weights
    assert not Tent.sees.source_styles


@pytest.fixture(scope="module")
def fitted(model: nn.Module, styles: dict[str, SourceStyles]) -> ShiftedModel:
    """It shifts after layer2 what layer1 says is far: three of the six images."""
    gate = sources_of(model, [(images(), [0, 1, 2] * 2)], "layer1")
    scores = ShiftedModel(model, styles["layer2"], gate=gate).explain(images()).score
    return ShiftedModel(model, styles["layer2"], float(scores.median()), gate=gate)


@pytest.mark.parametrize("name", ["ts", "ts:soft", "ts:partial=0.8", "ts+t3a", "ts:partial=0.8+t3a"])
def test_what_names_neither_layer_nor_threshold_shifts_what_the_fitted_model_shifts(
    name: str, model: nn.Module, styles: dict[str, SourceStyles], fitted: ShiftedModel
) -> None:
    body = wrapped(row_of(name, "layer2", fitted.alpha), model, styles, fitted=fitted).body
    assert isinstance(body, ShiftedModel)
    assert body.explain(images()).far.sum() == 3
    assert torch.equal(body.explain(images()).score, fitted.explain(images()).score)
    assert torch.equal((body(images()) != model(images())).any(dim=1), fitted.explain(images()).far)


def test_its_variant_is_the_one_that_was_named(
    model: nn.Module, styles: dict[str, SourceStyles], fitted: ShiftedModel
) -> None:
    found = wrapped(row_of("ts:partial=0.8", "layer2"), model, styles, fitted=fitted)
    assert (found(images()) - fitted(images())).abs().max() > 1e-4
    everything = wrapped(row_of("ts:all", "layer2"), model, styles, fitted=fitted)
    assert torch.equal(everything(images()), ShiftedModel(model, styles["layer2"], 0.0)(images()))


@pytest.fixture(scope="module")
def several(model: nn.Module, styles: dict[str, SourceStyles]) -> ShiftedModel:
    """It shifts after layer1 and layer2, half of the way, what layer1 says is far: three of the six images."""
    first = sources_of(model, [(images(), [0, 1, 2] * 2)], "layer1")
    scores = ShiftedModel(model, first).explain(images()).score
    half = Variant(fraction=0.5)
    return ShiftedModel(model, first, float(scores.median()), half, gate=first.whitened(), then=[styles["layer2"]])


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("ts", Variant(fraction=0.5)),
        ("ts:soft", Variant(to="soft", fraction=0.5)),
        ("ts:partial=0.8", Variant(fraction=0.8)),
        ("ts:partial=1", Variant()),
        ("ts:all", Variant(everything=True, fraction=0.5)),
    ],
)
def test_a_fitted_model_of_several_layers_shifts_at_all_of_them_in_the_variant_that_was_named(
    name: str, variant: Variant, model: nn.Module, styles: dict[str, SourceStyles], several: ShiftedModel
) -> None:
    body = wrapped(row_of(name, "layer1"), model, styles, fitted=several).body
    assert isinstance(body, ShiftedModel)
    assert (body.attaching.at, body.attaching.then) == ("layer1", ("layer2",))
    assert (body.shifting.variant, body.further[0].variant) == (variant, variant)
    gate = None if variant.everything else several.gate
    wanted = ShiftedModel(model, several.sources, several.alpha, variant, gate=gate, then=several.then)
    assert torch.equal(body(images()), wanted(images()))
    if not variant.everything:
        assert torch.equal((body(images()) != model(images())).any(dim=1), several.explain(images()).far)


def test_what_names_a_threshold_is_decided_where_it_shifts(
    model: nn.Module, styles: dict[str, SourceStyles], fitted: ShiftedModel
) -> None:
    found = wrapped(row_of("ts:alpha=0.5", "layer2"), model, styles, fitted=fitted)
    assert torch.equal(found(images()), ShiftedModel(model, styles["layer2"], 0.5)(images()))


@pytest.mark.parametrize("name", ["ts", "conststyle", "ts+t3a"])
def test_a_layer_without_styles_is_named(name: str, model: nn.Module) -> None:
    with pytest.raises(KeyError, match="shifts at layer2, but there are source styles for nothing only"):
        wrapped(row_of(name, "layer2"), model, {})


def test_the_layers_that_rows_need_are_told_once() -> None:
    names = ("none", "tent", "ts", "conststyle:at=layer1", "ts:at=layer3+tent", "ts:soft")
    assert layers_of(row_of(name, "layer2") for name in names) == ["layer2", "layer1", "layer3"]


def test_row_kinds_can_be_told_apart() -> None:
    assert isinstance(row_of("ts", "layer2"), ShiftRow)
