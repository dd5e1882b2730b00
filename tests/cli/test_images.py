"""IMAGES on the command line."""

from pathlib import Path

import pytest
import torch

from styleshift.cli.images import batches_of, files_of


def test_folders_are_searched_and_files_are_taken(pictures: Path) -> None:
    single = pictures / "photo" / "class 0" / "1.png"
    files = files_of([single, pictures / "sketch" / "class 3"])
    assert files[0] == single
    assert [file.name for file in files[1:]] == ["0.png", "1.png", "2.png"]


def test_a_path_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no file or folder nowhere"):
        files_of([Path("nowhere")])


def test_a_batch_is_prepared_as_for_testing(pictures: Path) -> None:
    ((files, images),) = batches_of(files_of([pictures / "photo" / "class 0"]), "light")
    assert len(files) == 3
    assert (images.shape, images.dtype) == ((3, 3, 112, 112), torch.float32)


def test_images_come_in_batches(pictures: Path) -> None:
    assert [len(files) for files, _ in batches_of(files_of([pictures]), "light")] == [64, 20]
