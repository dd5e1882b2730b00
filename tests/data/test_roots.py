"""Where datasets lie."""

from pathlib import Path

import pytest

from styleshift.data.roots import catalogued, data_root, dataset, folder_of, user_cache


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no settings from outside."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("STYLESHIFT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "here"


def test_the_root_given_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYLESHIFT_DATA", "set")
    assert data_root(Path("given")) == Path("given")


def test_then_the_environments(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / "data").mkdir()
    monkeypatch.setenv("STYLESHIFT_DATA", "set")
    assert data_root() == Path("set")


def test_then_the_folder_data_where_one_is(elsewhere: Path) -> None:
    (elsewhere / "data").mkdir()
    assert data_root() == Path("data")


def test_else_the_users_cache(tmp_path: Path) -> None:
    assert data_root() == tmp_path / "xdg" / "styleshift" / "data"


def test_the_users_cache_is_below_home_without_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache() == tmp_path / ".cache" / "styleshift"


@pytest.mark.parametrize("name", ["pacs", "PACS"])
def test_a_dataset_of_the_catalog_is_known_in_any_spelling(name: str) -> None:
    entry = catalogued(name)
    assert entry is not None
    assert entry.facts.title == "PACS"


@pytest.mark.parametrize("name", ["folder", "table", "pac", ""])
def test_what_is_in_no_catalog_is_none(name: str) -> None:
    assert catalogued(name) is None


def test_its_folder_is_found_in_any_spelling(tmp_path: Path) -> None:
    (tmp_path / "P-A-C-S").mkdir()
    entry = catalogued("pacs")
    assert entry is not None
    assert folder_of(entry, tmp_path) == tmp_path / "P-A-C-S"
    assert folder_of(entry, tmp_path / "nowhere") == tmp_path / "nowhere" / "pacs"


def test_a_folder_of_ones_own_is_loaded_by_path_or_by_name_below_the_root(tree: Path) -> None:
    assert len(dataset(tree)) == len(dataset("tree", tree.parent)) == 12


def test_a_table_is_loaded_by_path(tree: Path) -> None:
    (tree / "mine.csv").write_text("path,class,domain\nink/ant/000.png,ant,ink\n")
    assert dataset(tree / "mine.csv").name == "mine"


def test_a_set_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="styleshift data get pacs"):
        dataset("pacs", tmp_path)


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"no dataset or folder 'pax'.*known: .*pacs"):
        dataset("pax", tmp_path)
