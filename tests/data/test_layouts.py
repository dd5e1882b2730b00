"""Folder layouts."""

from pathlib import Path

import pytest

from styleshift.data.layouts import Names, home, images_below, tree


def touch(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


NAMES = Names(domains=("ink", "oil"), classes=("ant", "bee"), spellings={"Oil2007": "oil", "1": "bee"})


def test_it_reads_domain_class_and_file(tmp_path: Path) -> None:
    dataset = tree(touch(tmp_path, "ink/bee/2.jpg", "oil/ant/1.png"), "toy")
    assert dataset.files == ("ink/bee/2.jpg", "oil/ant/1.png")
    assert dataset.domain_names == ("ink", "oil")
    assert dataset.class_names == ("ant", "bee")
    assert dataset.classes.tolist() == [1, 0]


def test_the_order_of_files_is_the_alphabet_whatever_the_disk_says(tmp_path: Path) -> None:
    touch(tmp_path, "b/x/2.jpg", "a/y/1.jpg", "b/x/10.jpg", "a/x/3.jpg")
    assert images_below(tmp_path) == ["a/x/3.jpg", "a/y/1.jpg", "b/x/10.jpg", "b/x/2.jpg"]


def test_known_names_are_found_in_any_spelling(tmp_path: Path) -> None:
    dataset = tree(touch(tmp_path, "INK/Ant/1.jpg", "Oil2007/1/1.jpg"), "toy", NAMES)
    assert dataset.domains.tolist() == [0, 1]
    assert dataset.classes.tolist() == [0, 1]


def test_folders_that_are_no_known_domain_are_passed_over(tmp_path: Path) -> None:
    dataset = tree(touch(tmp_path, "ink/ant/1.jpg", "__MACOSX/ant/1.jpg", "preview.png"), "toy", NAMES)
    assert dataset.files == ("ink/ant/1.jpg",)


def test_hidden_files_and_other_endings_are_passed_over(tmp_path: Path) -> None:
    dataset = tree(touch(tmp_path, "ink/ant/1.jpg", "ink/ant/.1.jpg", "ink/ant/notes.txt", ".git/x/1.jpg"), "toy")
    assert dataset.files == ("ink/ant/1.jpg",)


def test_published_parts_become_lists(tmp_path: Path) -> None:
    files = "ink/crossval/ant/1.jpg", "ink/full/ant/9.jpg", "ink/test/ant/2.jpg", "oil/train/bee/3.jpg"
    dataset = tree(touch(tmp_path, *files), "toy", NAMES)
    assert dataset.files == (files[0], files[2], files[3])
    assert dataset.lists is not None
    assert dataset.lists.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_without_a_test_part_everything_is_tested(tmp_path: Path) -> None:
    lists = tree(touch(tmp_path, "ink/train/ant/1.jpg", "oil/val/ant/2.jpg"), "toy", NAMES).lists
    assert lists is not None
    assert lists.tolist() == [[1, 0, 1], [0, 1, 1]]


def test_a_plain_tree_has_no_lists(tmp_path: Path) -> None:
    assert tree(touch(tmp_path, "ink/ant/1.jpg"), "toy", NAMES).lists is None


@pytest.mark.parametrize("file", ["1.jpg", "ink/1.jpg", "ink/ant/deeper/1.jpg"])
def test_an_image_at_another_depth_is_refused_by_name(tmp_path: Path, file: str) -> None:
    with pytest.raises(ValueError, match=f"domain/class/file; {file} does not"):
        tree(touch(tmp_path, file, "ink/bee/1.jpg"), "toy")


def test_a_class_that_is_not_the_datasets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ink/cow/1.jpg lies in no class of this dataset, which are ant, bee"):
        tree(touch(tmp_path, "ink/cow/1.jpg"), "toy", NAMES)


def test_an_empty_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no images") as refusal:
        tree(tmp_path, "toy")
    assert "\n" not in str(refusal.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        tree(tmp_path / "absent", "toy")


@pytest.mark.parametrize("below", ["", "images", "kfold"])
def test_home_is_where_all_domains_begin(tmp_path: Path, below: str) -> None:
    touch(tmp_path / below, "INK/ant/1.jpg", "oil/ant/1.jpg")
    assert home(tmp_path, "Toy", NAMES, "Get it.") == tmp_path / below


def test_home_names_the_domains_that_are_missing(tmp_path: Path) -> None:
    touch(tmp_path, "ink/ant/1.jpg")
    with pytest.raises(FileNotFoundError, match=r"no folder for oil\. Get it\."):
        home(tmp_path, "Toy", NAMES, "Get it.")
