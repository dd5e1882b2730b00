"""Checkpoints come back as they were written, and a failing write costs nothing."""

import errno
import math
import os
import resource
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from styleshift.training.checkpoint import header_of, read_checkpoint, write_checkpoint


def test_a_tree_comes_back_as_it_was_written(tmp_path: Path) -> None:
    tree = {"step": 3, "loss": 0.1, "none": None, "history": [{"loss": 1.5}], "model": {"a.b": torch.arange(6.0)}}
    write_checkpoint(tmp_path / "c", tree)
    read = read_checkpoint(tmp_path / "c")
    assert torch.equal(read["model"].pop("a.b"), torch.arange(6.0))
    assert read == {**tree, "model": {}}


def test_floats_come_back_to_the_last_bit(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"sum": math.pi / 3 * 1e-17})
    assert read_checkpoint(tmp_path / "c")["sum"] == math.pi / 3 * 1e-17


def test_tensors_inside_lists_come_back(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"states": [torch.ones(2), torch.zeros(1)]})
    assert [state.tolist() for state in read_checkpoint(tmp_path / "c")["states"]] == [[1.0, 1.0], [0.0]]


def test_tensors_of_every_layout_come_back(tmp_path: Path) -> None:
    images = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    write_checkpoint(tmp_path / "c", {"whole": images, "view": images[:, 1], "same": images})
    read = read_checkpoint(tmp_path / "c")
    assert torch.equal(read["whole"], images)
    assert torch.equal(read["same"], images)
    assert torch.equal(read["view"], images[:, 1])


def test_the_header_is_read_without_the_tensors(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"facts": {"epoch": 2}, "weights": {"w": torch.ones(3)}})
    assert header_of(tmp_path / "c")["facts"] == {"epoch": 2}


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "c", {"step": 1})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device; the one before it is whole"):
            write_checkpoint(tmp_path / "c", {"step": 2})
    assert read_checkpoint(tmp_path / "c") == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"cannot write the 4.* bytes of .*: File too large; .*Make room") as caught:
            write_checkpoint(tmp_path / "c", {"w": torch.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_number_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_checkpoint(tmp_path / "c", {"loss": math.nan})
    assert not (tmp_path / "c").exists()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"w": torch.zeros(100)})
    whole = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(whole[:-7])
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        read_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("content", [b"", b"no safetensors", bytes(range(256)) * 40])
def test_a_broken_file_has_no_header_and_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    for read in (header_of, read_checkpoint):
        with pytest.raises(ValueError, match="c is not a whole safetensors file"):
            read(tmp_path / "c")


def test_a_file_of_others_is_refused(tmp_path: Path) -> None:
    save_file({"w": torch.zeros(1)}, tmp_path / "c")
    with pytest.raises(ValueError, match="not written by a training of ours"):
        read_checkpoint(tmp_path / "c")
