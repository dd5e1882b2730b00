"""The decoded cache."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from styleshift.data import cache
from styleshift.data.cache import HEADER, Decoded, decoded
from styleshift.data.catalog.folder import Folder
from styleshift.data.decoding import rgb, square
from styleshift.data.domains import Domains

SOURCE = Path(__file__).parents[2] / "src"


def expected(dataset: Domains, index: int, size: int) -> torch.Tensor:
    return torch.from_numpy(np.array(square(rgb(dataset.path(index)), size))).permute(2, 0, 1)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".lock")


def test_it_holds_every_image_cut_to_a_square(small: Domains, tmp_path: Path) -> None:
    cached = decoded(small, 16, tmp_path)
    assert cached.images.shape == (12, 3, 16, 16)
    for index in range(12):
        assert torch.equal(torch.from_numpy(np.array(cached.images[index])), expected(small, index, 16))


def test_take_gives_the_images_asked_for_in_channels_last(small: Domains, tmp_path: Path) -> None:
    taken = decoded(small, 16, tmp_path).take([5, 0, 5])
    assert taken.is_contiguous(memory_format=torch.channels_last)
    for image, index in zip(taken, (5, 0, 5), strict=True):
        assert torch.equal(image, expected(small, index, 16))


def test_take_accepts_numpy_and_torch_indices(small: Domains, tmp_path: Path) -> None:
    cached = decoded(small, 16, tmp_path)
    assert torch.equal(cached.take(np.array([3, 1])), cached.take(torch.tensor([3, 1])))


def test_take_refuses_an_index_there_is_not(small: Domains, tmp_path: Path) -> None:
    with pytest.raises(IndexError):
        decoded(small, 16, tmp_path).take([12])


def test_what_was_taken_may_be_changed_and_the_cache_may_not(small: Domains, tmp_path: Path) -> None:
    cached = decoded(small, 16, tmp_path)
    cached.take([0]).zero_()
    assert cached.images[0].any()
    with pytest.raises(ValueError, match="read-only"):
        cached.images[0] = 0


def test_it_is_built_once(small: Domains, tmp_path: Path) -> None:
    path = decoded(small, 16, tmp_path).path
    built = path.stat().st_mtime_ns
    reports: list[tuple[int, int]] = []
    again = decoded(small, 16, tmp_path, progress=lambda done, total: reports.append((done, total)))
    assert (again.path.stat().st_mtime_ns, reports) == (built, [])


def test_it_reports_its_progress(small: Domains, tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    decoded(small, 16, tmp_path, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(done, 12) for done in range(1, 13)]


def test_it_is_found_again_by_content_from_another_place(small: Domains, tmp_path: Path) -> None:
    first = decoded(small, 16, tmp_path / "cache")
    shutil.copytree(small.root, tmp_path / "elsewhere" / "tree")
    second = decoded(Folder().load(tmp_path / "elsewhere" / "tree"), 16, tmp_path / "cache")
    assert (second.key, second.path) == (first.key, first.path)


def test_another_size_is_another_file(small: Domains, tmp_path: Path) -> None:
    assert decoded(small, 16, tmp_path).path != decoded(small, 17, tmp_path).path


def test_a_changed_image_is_another_content(small: Domains, tmp_path: Path) -> None:
    before = decoded(small, 16, tmp_path / "cache")
    Image.new("RGB", (20, 24), "red").save(small.path(0))
    after = decoded(small, 16, tmp_path / "cache")
    assert after.key != before.key
    assert torch.equal(after.take([0])[0], expected(small, 0, 16))


def test_another_label_is_another_content(small: Domains, tmp_path: Path) -> None:
    other = replace(small, domains=1 - small.domains)
    assert decoded(other, 16, tmp_path).key != decoded(small, 16, tmp_path).key


def test_several_workers_make_the_same_file(small: Domains, tmp_path: Path) -> None:
    one, four = (decoded(small, 16, tmp_path / str(workers), workers=workers).path for workers in (1, 4))
    assert one.read_bytes() == four.read_bytes()


@pytest.mark.parametrize("damage", ["truncate", "header", "pixel", "empty"])
def test_a_damaged_file_is_built_again(small: Domains, tmp_path: Path, damage: str) -> None:
    cached = decoded(small, 16, tmp_path)
    whole = cached.path.read_bytes()
    pixel = whole[:-1] + bytes([whole[-1] ^ 1])
    broken = {"truncate": whole[:-1], "header": b"?" + whole[1:], "pixel": pixel, "empty": b""}[damage]
    cached.path.write_bytes(broken)
    assert decoded(small, 16, tmp_path).path.read_bytes() == whole


def test_its_pixels_are_compared_once_in_a_process(
    small: Domains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    digest = cache._pixels_digest
    monkeypatch.setattr(cache, "_pixels_digest", lambda path: read.append(path) or digest(path))
    paths = [decoded(small, 16, tmp_path).path for _ in range(3)]
    assert read == paths[:1]


def test_the_pixels_of_a_very_large_file_are_trusted(
    small: Domains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = decoded(small, 16, tmp_path)
    broken = cached.path.read_bytes()[:-1] + b"?"
    cached.path.write_bytes(broken)
    monkeypatch.setattr(cache, "COMPARED", 100)
    assert decoded(small, 16, tmp_path).path.read_bytes() == broken


def test_verify_accepts_what_was_built(small: Domains, tmp_path: Path) -> None:
    decoded(small, 16, tmp_path).verify()


def test_verify_finds_a_single_changed_pixel(small: Domains, tmp_path: Path) -> None:
    cached = decoded(small, 16, tmp_path)
    with cached.path.open("r+b") as file:
        file.seek(HEADER + 1000)
        value = file.read(1)[0]
        file.seek(HEADER + 1000)
        file.write(bytes([value ^ 1]))
    with pytest.raises(ValueError, match="does not match its checksum"):
        cached.verify()


def test_its_header_says_what_it_is(small: Domains, tmp_path: Path) -> None:
    cached = decoded(small, 16, tmp_path)
    about = json.loads(cached.path.read_bytes()[: HEADER - 64])
    assert (about["key"], about["count"], about["size"]) == (cached.key, 12, 16)


def test_a_damaged_image_is_named_and_nothing_is_left(small: Domains, tmp_path: Path) -> None:
    small.path(3).write_bytes(small.path(3).read_bytes()[:60])
    small.path(4).write_text("no image")
    with pytest.raises(ValueError, match="2 of 12 images cannot be used") as refusal:
        decoded(small, 16, tmp_path / "cache")
    assert str(small.path(3)) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert files_in(tmp_path / "cache") == []


def test_a_missing_image_is_named(small: Domains, tmp_path: Path) -> None:
    small.path(3).unlink()
    with pytest.raises(ValueError, match=f"1 of 12 files are missing, {small.files[3]}"):
        decoded(small, 16, tmp_path / "cache")


def test_too_little_disk_is_said_before_anything_is_written(small: Domains, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"needs \d+\.\d GiB in .* are free; make room") as refusal:
        decoded(small, 10_000_000, tmp_path / "cache")
    assert "\n" not in str(refusal.value)
    assert files_in(tmp_path / "cache") == []


def test_no_images_are_refused(small: Domains, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no images to decode"):
        decoded(small.only([]), 16, tmp_path)


def test_it_is_kept_in_the_users_cache_folder(small: Domains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert decoded(small, 16).path.parent == tmp_path / "xdg" / "styleshift"


def test_a_disk_that_fills_up_in_the_middle_leaves_nothing(
    small: Domains, tmp_path: Path, plain_python: Callable[[str], str]
) -> None:
    said = plain_python(f"""
import resource
from pathlib import Path
from styleshift.data.cache import decoded
from styleshift.data.catalog.folder import Folder
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))
try:
    decoded(Folder().load(Path({str(small.root)!r})), 16, Path({str(tmp_path / "cache")!r}))
except OSError as full:
    print(full)
""")
    assert "File too large" in said
    assert files_in(tmp_path / "cache") == []


# A process of its own, to be killed: says how far it is and, told to, stops there for ever.
BUILD = """
import sys, time
from pathlib import Path
from styleshift.data.cache import decoded
from styleshift.data.catalog.folder import Folder
stop = int(sys.argv[3])
def report(done, total):
    print(done, flush=True)
    while done == stop:
        time.sleep(0.01)
decoded(Folder().load(Path(sys.argv[1])), 16, Path(sys.argv[2]), report, workers=1)
"""


def build_in_another_process(dataset: Domains, folder: Path, stop: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", BUILD, str(dataset.root), str(folder), str(stop)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)})


def wait_until_it_stops(process: subprocess.Popen[str], stop: int) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == stop:
            return
    raise AssertionError("the process ended before it was killed")


@pytest.mark.parametrize("stop", [1, 12])
def test_a_build_that_is_killed_leaves_no_cache_and_no_lock(small: Domains, tmp_path: Path, stop: int) -> None:
    folder = tmp_path / "cache"
    process = build_in_another_process(small, folder, stop)
    wait_until_it_stops(process, stop)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(folder.glob("*.u8"))
    assert isinstance(decoded(small, 16, folder), Decoded)
    assert files_in(folder) == [decoded(small, 16, folder).path.name]


def test_two_processes_build_it_once(small: Domains, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    first = build_in_another_process(small, folder, stop=2)
    wait_until_it_stops(first, 2)
    second = build_in_another_process(small, folder, stop=-1)
    time.sleep(0.2)
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    first.communicate()
    said, _ = second.communicate(timeout=60)
    assert said.split() == [str(done) for done in range(1, 13)]
    decoded(small, 16, folder).verify()


@pytest.mark.pacs
def test_the_real_images_are_cached_as_they_are(pacs_root: Path, tmp_path: Path) -> None:
    from styleshift.data.catalog.pacs import PACS

    some = PACS().load(pacs_root)
    some = some.only(np.arange(0, len(some), 500))
    cached = decoded(some, 227, tmp_path)
    assert torch.equal(cached.take([7])[0], torch.from_numpy(np.array(rgb(some.path(7)))).permute(2, 0, 1))
