"""What comes onto the page."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.report.test_over_time import written

from styleshift.data.decoding import Progress
from styleshift.experiments.recipe import recipe
from styleshift.experiments.store import Store
from styleshift.experiments.table import Table
from styleshift.report.contents import all_recipes, asked_of, contents_of, main_tables, tables_with_results

pytestmark = pytest.mark.usefixtures("without_tsne")


def quiet(title: str) -> nullcontext[Progress]:
    return nullcontext(lambda done, total: None)


def test_an_empty_store_lists_the_recipes(tmp_path: Path) -> None:
    contents = contents_of(Store(tmp_path), (), None, quiet)
    assert (contents.tables, contents.chapters, contents.looks, contents.runs.rows) == ((), (), (), ())
    assert len(contents.recipes.rows) == len(all_recipes())


def test_every_recipe_with_results_has_its_table(smoke_store: Store) -> None:
    contents = contents_of(smoke_store, (), None, quiet)
    assert {"pacs-original", "pacs-alpha", "pacs-shift-location"} <= {table.recipe for table in contents.tables}
    assert len(contents.runs.rows) == 4
    assert dict(contents.made_with)["scales"] == "smoke"


def test_recipes_can_be_chosen(smoke_store: Store) -> None:
    contents = contents_of(smoke_store, ("pacs-alpha",), None, quiet)
    assert [table.recipe for table in contents.tables] == ["pacs-alpha"]


def test_an_unknown_recipe_names_near_ones(smoke_store: Store) -> None:
    with pytest.raises(KeyError, match="did you mean one of pacs-alpha"):
        contents_of(smoke_store, ("pacs-alfa",), None, quiet)


def test_one_table_stands_for_a_dataset(smoke_store: Store) -> None:
    tables = list(tables_with_results([recipe(name) for name in reversed(all_recipes())], smoke_store.records()))
    (main,) = main_tables(tables)
    assert (main.recipe.scenario, len(main.recipe.groups), main.recipe.protocol) == (
        "original",
        1,
        "leave-one-domain-out",
    )


def test_a_closer_look_is_at_the_papers_method_of_every_target(smoke_table: Table, smoke_store: Store) -> None:
    assert [(asked.column, asked.run.method) for asked in asked_of(smoke_table, smoke_store)] == [
        ("Cartoon", "mixstyle+sb"),
        ("Sketch", "mixstyle+sb"),
    ]


def test_a_model_that_is_not_kept_stands_back_for_one_that_is(
    smoke_table: Table, smoke_store: Store, tmp_path: Path
) -> None:
    copied = Store(Path(shutil.copytree(smoke_store.folder, tmp_path / "store")))
    for folder in copied.models.glob("*mixstyle+sb_sketch*"):
        shutil.rmtree(folder)
    assert [asked.run.method for asked in asked_of(smoke_table, copied)] == ["mixstyle+sb", "mixstyle"]


def test_without_models_a_look_says_so_in_one_line(smoke_store: Store, tmp_path: Path) -> None:
    bare = Store(tmp_path / "bare")
    bare.take_in(smoke_store.folder / "records")
    looks = contents_of(bare, ("pacs-original",), None, quiet).looks
    assert [look.figures for look in looks] == [(), ()]
    assert all("the model is not kept in this store" in look.problem for look in looks)


def test_streams_are_a_chapter_from_the_store_and_from_further_folders(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    written(store.folder / "results" / "streams-a.json", "a")
    written(tmp_path / "sent" / "streams-b.json", "b")
    (chapter,) = contents_of(store, (), None, quiet, [tmp_path / "sent"]).chapters
    assert chapter.name == "streams"
    assert [(figure.name, figure.title) for figure in chapter.figures] == [("stream-1", "a"), ("stream-2", "b")]


def test_of_chosen_recipes_only_their_own_models_are_shown(smoke_store: Store, tmp_path: Path) -> None:
    bare = Store(tmp_path / "bare")
    bare.take_in(smoke_store.folder / "records")
    written(bare.folder / "streams-ours.json", "ours", key=bare.records()[0].key)
    written(bare.folder / "streams-other.json", "other", key="another")
    *_, chapter = contents_of(bare, ("pacs-original",), None, quiet).chapters
    assert [figure.title for figure in chapter.figures] == ["ours"]
