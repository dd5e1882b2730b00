"""Recipes: what a file may say, and what is said of one that is wrong."""

from pathlib import Path

import pytest

from styleshift.experiments.recipe import Column, Recipe, Row, recipe, recipe_names

GOOD = """
title = "Mine"
dataset = "pacs"
columns = [{ name = "Art", domain = "art_painting" }]
rows = [{ method = "mixstyle", shift = "ts" }]
"""


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_it_reads_a_file_of_the_users_own(tmp_path: Path) -> None:
    mine = recipe(written(tmp_path, GOOD))
    assert (mine.name, mine.paper, mine.alpha, mine.shift_at) == ("mine", "mine", 3.0, "layer2")


def test_it_names_the_near_key_for_an_unknown_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"mine\.toml: no key 'scenari'; did you mean one of scenario"):
        recipe(written(tmp_path, GOOD + 'scenari = "original"'))


def test_it_names_the_near_key_inside_a_row(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no key 'rows\.0\.shft'; did you mean one of shift"):
        recipe(written(tmp_path, GOOD.replace("shift =", "shft =")))


def test_it_says_what_a_value_should_have_been(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="alpha: Input should be greater than or equal to 0"):
        recipe(written(tmp_path, GOOD + "alpha = -1.0"))


def test_it_counts_further_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\(and 1 more\)"):
        recipe(written(tmp_path, GOOD + "alpha = -1.0\nclusters = 0"))


def test_it_says_where_a_file_is_not_toml(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"mine\.toml is not TOML: Invalid value"):
        recipe(written(tmp_path, "title = "))


def test_it_says_that_a_file_is_missing() -> None:
    with pytest.raises(FileNotFoundError, match=r"no recipe file nowhere\.toml"):
        recipe("nowhere.toml")


def test_it_names_near_recipes_for_an_unknown_one() -> None:
    with pytest.raises(KeyError, match="pacs-original"):
        recipe("pacs-orignal")


def test_it_does_not_take_the_scales_for_a_recipe() -> None:
    assert "scales" not in recipe_names()
    with pytest.raises(KeyError):
        recipe("scales")


def test_it_refuses_two_rows_that_read_alike(tmp_path: Path) -> None:
    twice = GOOD.replace("rows = [", 'rows = [{ method = "mixstyle", shift = "ts" }, ')
    with pytest.raises(ValueError, match="rows must differ; twice there is mixstyle, ts"):
        recipe(written(tmp_path, twice))


def test_a_columns_group_stands_before_the_slash() -> None:
    assert Column(name="data/Art", domain="art_painting").group == "data"
    assert Column(name="Art", domain="art_painting").group == ""


def test_groups_and_domains_come_once_and_in_order() -> None:
    imbalanced = recipe("pacs-imbalanced")
    assert imbalanced.groups == ("data-imbalance", "class-imbalance")
    assert imbalanced.domains == ("art_painting", "cartoon", "photo", "sketch")


def test_a_row_is_called_what_the_paper_calls_it() -> None:
    assert Row(method="mixstyle+sb", shift="ts", paper="TSB (+ MixStyle)").label == "TSB (+ MixStyle)"
    assert Row(method="mixstyle+sb", shift="ts").label == "mixstyle+sb, ts"
    assert Row(method="mixstyle").label == "mixstyle"


def test_a_row_chosen_with_target_labels_says_so() -> None:
    assert Row(method="mixstyle", oracle=True).label == "mixstyle (oracle)"


def test_it_cannot_be_changed(small: Recipe) -> None:
    with pytest.raises(ValueError, match="frozen"):
        small.alpha = 2.0  # type: ignore[misc]  # that it is refused is the point
