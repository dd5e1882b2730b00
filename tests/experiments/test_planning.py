"""The runs behind a recipe."""

from dataclasses import replace
from typing import Any

import pytest

from styleshift.experiments.planning import LAYERS, Run, Shift, run_of, runs_of, shift_of, shifts_of
from styleshift.experiments.recipe import Recipe, Row, recipe
from styleshift.experiments.scales import scale
from styleshift.training.variants import shift_row

CPU = scale("cpu")


def cells(name: str, **choice: object) -> set[str]:
    return {run.cell for run in runs_of(recipe(name), CPU, [0], **choice)}  # type: ignore[arg-type]  # one choice


def test_rows_that_differ_in_the_shift_share_a_training(small: Recipe) -> None:
    assert len(runs_of(small, CPU, [0])) == 2  # one method, two columns


def test_it_goes_through_a_whole_seed_before_the_next(small_runs: list[Run]) -> None:
    assert [(run.seed, run.domain) for run in small_runs] == [
        (seed, domain) for seed in (0, 1, 2) for domain in ("art_painting", "sketch")
    ]


def test_it_takes_the_scales_seeds_where_none_are_given(small: Recipe) -> None:
    assert {run.seed for run in runs_of(small, CPU)} == set(CPU.seeds)


@pytest.mark.parametrize("name", ["pacs-alpha", "pacs-shift-location", "pacs-shift-variants"])
def test_recipes_about_test_time_need_no_training_of_their_own(name: str) -> None:
    assert cells(name) <= cells("pacs-original")


def test_a_removed_share_of_nothing_is_the_original_training() -> None:
    zero = {run.cell for run in runs_of(recipe("pacs-removal-share"), CPU, [0], ["scenario=original"])}
    assert zero
    assert zero <= cells("pacs-original")


def test_without_domain_labels_only_balancing_is_trained_anew() -> None:
    anew = {
        run.method
        for run in runs_of(recipe("pacs-without-domain-labels"), CPU, [0])
        if run.cell not in cells("pacs-original")
    }
    assert anew == {"mixstyle+sb", "dsu+sb", "efdmix+sb"}


def test_no_other_recipe_shares_a_single_source_training() -> None:
    assert not cells("pacs-single-source") & cells("pacs-original")


def test_a_resnet50_is_another_run() -> None:
    assert not cells("pacs-resnet50") & cells("pacs-original")


def test_threads_do_not_change_a_cell(small_runs: list[Run]) -> None:
    run = small_runs[0]
    assert replace(run, settings=replace(run.settings, threads=7)).cell == run.cell


def test_scales_never_share_a_cell(small: Recipe) -> None:
    found = [run.cell for name in ("smoke", "cpu", "paper") for run in runs_of(small, scale(name), [0])]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (["target=sketch"], {("mixstyle", "sketch")}),
        (["target=art"], {("mixstyle", "art_painting")}),
        (["target=sketch", "target=art"], {("mixstyle", "sketch"), ("mixstyle", "art_painting")}),
        (["target=sketch", "method=mixstyle"], {("mixstyle", "sketch")}),
    ],
)
def test_only_narrows_the_grid(small: Recipe, only: list[str], expected: set[tuple[str, str]]) -> None:
    assert {(run.method, run.domain) for run in runs_of(small, CPU, [0], only)} == expected


@pytest.mark.parametrize("word", ["sb", "tsb", "TSB"])
def test_only_takes_the_papers_words_for_all_that_balance(word: str) -> None:
    runs = runs_of(recipe("pacs-imbalanced"), CPU, [0], [f"method={word}", "target=sketch"])
    assert {run.method for run in runs} == {"mixstyle+sb", "dsu+sb", "efdmix+sb"}


def test_a_shift_at_a_layer_that_no_run_is_tested_at_is_refused(small: Recipe) -> None:
    rows = [small.rows[1].model_copy(update={"shift": "ts:at=stages.0"})]
    with pytest.raises(ValueError, match=r"small shifts at stages\.0; a run is tested at layer1, layer2"):
        shifts_of(small.model_copy(update={"rows": rows}), ("layer1", "layer2"))


def test_only_that_leaves_nothing_says_what_there_is(small: Recipe) -> None:
    there_is = "there are art_painting, sketch and mixstyle"
    with pytest.raises(ValueError, match=f"small has no run with target=photo; {there_is}"):
        runs_of(small, CPU, [0], ["target=photo"])


def test_only_with_an_unknown_name_says_which_there_are(small: Recipe) -> None:
    with pytest.raises(ValueError, match=r"--only takes target=.*; got 'tarrget=photo'"):
        runs_of(small, CPU, [0], ["tarrget=photo"])


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("none", "none"),
        ("ts", "ts:at=layer2"),
        ("ts:alpha=3", "ts:at=layer2"),
        ("ts:alpha=0", "ts:at=layer2,alpha=0"),
        ("ts:at=layer4", "ts:at=layer4"),
        ("ts:all", "ts:at=layer2,all"),
        ("ts:sampled", "ts:at=layer2,sampled=100"),
        ("ts:soft", "ts:at=layer2,soft=0.25"),
        ("ts:partial=0.8", "ts:at=layer2,partial=0.8"),
    ],
)
def test_a_shift_has_one_full_name(written: str, name: str) -> None:
    assert Shift(shift_row(written, "layer2")).name == name


def test_a_full_name_means_the_same_whatever_the_recipe() -> None:
    """`ts` of a recipe with alpha 2 and clusters is not `ts` of another."""
    clustered = recipe("pacs-without-domain-labels")
    assert shift_of(clustered, Row(method="dsu", shift="ts")).name == "ts:at=layer2,alpha=2,clusters=3"


def test_every_recipe_on_pacs_finds_its_shifts_in_any_other() -> None:
    tested = {shift.name for shift in shifts_of(recipe("pacs-original"), LAYERS)}
    for name in ("pacs-alpha", "pacs-shift-location", "pacs-shift-variants", "pacs-without-domain-labels"):
        other = recipe(name)
        assert {shift_of(other, row).name for row in other.rows} <= tested


def test_a_test_time_method_is_asked_for_by_its_complete_name(small: Recipe) -> None:
    names = ("tent", "t3a:filter=1", "ts+tent", "conststyle")
    rows = [Row(method="mixstyle", shift=name) for name in names]
    tested = {shift.name for shift in shifts_of(small.model_copy(update={"rows": rows}), LAYERS)}
    assert {"tent", "t3a:filter=1", "ts:at=layer2,alpha=3+tent", "conststyle:at=layer2"} <= tested


def test_a_method_that_looks_at_no_layer_goes_with_any(small: Recipe) -> None:
    rows = [Row(method="mixstyle", shift=name) for name in ("tent", "t3a:filter=1")]
    tested = {shift.name for shift in shifts_of(small.model_copy(update={"rows": rows}), ("layer1",))}
    assert {name for name in tested if not name.startswith("ts:at=layer1")} == {"none", "tent", "t3a:filter=1"}


def test_other_recipes_are_tested_with_no_such_method_and_time_nothing() -> None:
    tested = shifts_of(recipe("pacs-original"), LAYERS)
    assert not any(shift.adapted or shift.timed for shift in tested)


def test_a_cell_is_what_it_was_when_results_were_kept() -> None:
    """A change here parts old results from new ones: raise the protocol's version on purpose, or find what changed."""
    kept = runs_of(recipe("pacs-original"), CPU, [0], ["target=sketch", "method=mixstyle", "method=mixstyle+sb"])
    assert sorted(run.cell[:8] for run in kept) == ["839054c7", "d951adf4"]


def test_the_comparison_with_test_time_methods_needs_no_training_of_its_own() -> None:
    assert cells("pacs-test-time-adaptation") <= cells("pacs-original")


def test_it_tests_at_no_layer_that_is_not_there(small: Recipe) -> None:
    assert {shift.row.at for shift in shifts_of(small, ("layer1", "layer2"))} == {None, "layer1", "layer2"}


def test_points_belong_to_the_method_that_the_recipe_gives_them_for() -> None:
    vlcs = recipe("vlcs-imbalanced")
    points = {row.method: run_of(vlcs, CPU, row, vlcs.columns[0], 0).settings.points for row in vlcs.rows}
    assert points["mixstyle"] == ("layer1", "layer2")
    assert points["dsu"] is None


def test_a_folders_name_stays_in_its_place_whatever_datasets_and_domains_are_called(small_runs: list[Run]) -> None:
    run = replace(small_runs[0], dataset="/home/me/images", domain="../oil paint")
    assert run.folder_name("0123456789abcdef").startswith(
        "-home-me-images_original_resnet18_mixstyle_..-oil-paint_seed0_"
    )


def test_a_folders_name_tells_runs_apart(small_runs: list[Run]) -> None:
    names = {run.folder_name(run.key("d", "w")) for run in small_runs}
    assert len(names) == len(small_runs)
    assert all("/" not in name and ":" not in name for name in names)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rows": [Row(method="mixstyle", shift="tss")]}, "nothing at test time is called 'tss'"),
        ({"rows": [Row(method="mixstyle", shift="ts:alpah=2")]}, "in the shift 'ts:alpah=2'"),
        ({"rows": [Row(method="mixstyle", shift="ts:at=layer9")]}, "small shifts at layer9; a run is tested at layer1"),
        ({"shift_at": "layer9", "rows": [Row(method="mixstyle")]}, "small shifts at layer9; a run is tested at layer1"),
        ({"scenario": "long-tialed"}, "there is no scenario 'long-tialed'"),
        ({"scenario": "data-imbalanced:2"}, "scenario 'data-imbalanced:2'"),
        ({"split": "offical"}, "small has no split 'offical'; did you mean official"),
    ],
)
def test_a_mistake_in_a_recipe_is_found_when_it_is_planned(small: Recipe, changed: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, KeyError), match=said):
        runs_of(small.model_copy(update=changed), CPU)
