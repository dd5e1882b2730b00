"""Taking in a dataset without trusting it."""

import io
import os
import random
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from styleshift.data.importing import Limits, import_dataset

Pack = Callable[[Path, Path], Path]


def as_zip(folder: Path, target: Path) -> Path:
    path = target / "archive.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder.parent))
    return path


def as_tar(folder: Path, target: Path) -> Path:
    path = target / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, folder.name)
    return path


def as_folder(folder: Path, target: Path) -> Path:
    return folder


def zip_of(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tar_with(path: Path, member: tarfile.TarInfo, content: bytes = b"", mode: str = "w") -> Path:
    member.size = len(content)
    with tarfile.open(path, mode) as archive:
        archive.addfile(member, io.BytesIO(content))
    return path


def left_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir()) if root.exists() else []


@pytest.mark.parametrize("pack", [as_zip, as_tar, as_folder])
def test_it_takes_in_a_tree(tree: Path, tmp_path: Path, pack: Pack) -> None:
    dataset = import_dataset(pack(tree, tmp_path), "mine", tmp_path / "data")
    assert (dataset.name, dataset.root) == ("mine", tmp_path / "data" / "mine")
    assert dataset.counts().tolist() == [[3, 2, 0], [2, 4, 1]]
    assert dataset.path(0).read_bytes() == (tree / dataset.files[0]).read_bytes()
    assert left_in(tmp_path / "data") == ["mine"]


def test_it_takes_in_a_dataset_of_the_catalog_below_its_own_name(
    tmp_path: Path, make_tree: Callable[..., Path]
) -> None:
    domains = ("Caltech101", "LabelMe", "SUN09", "VOC2007")
    source = make_tree(tmp_path / "VLCS", {domain: {"dog": 1} for domain in domains})
    dataset = import_dataset(source, "vlcs", tmp_path / "data")
    assert (dataset.name, dataset.root) == ("VLCS", tmp_path / "data" / "vlcs")


def test_one_domain_alone_is_not_taken_for_a_wrapping_folder(tmp_path: Path, make_tree: Callable[..., Path]) -> None:
    dataset = import_dataset(make_tree(tmp_path / "x", {"ink": {"ant": 1, "bee": 1}}), "mine", tmp_path / "data")
    assert dataset.domain_names == ("ink",)


def test_hidden_leftovers_do_not_count_as_content(tree: Path, tmp_path: Path) -> None:
    path = as_zip(tree, tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/tree/._x", b"")
        archive.writestr(".DS_Store", b"")
    assert len(import_dataset(path, "mine", tmp_path / "data")) == 12


@pytest.mark.parametrize(
    "name", ["../out.png", "ink/../../out.png", "/out.png", "..\\out.png", "C:/out.png", "a\\..\\..\\x"]
)
def test_a_zip_cannot_write_outside(tmp_path: Path, name: str) -> None:
    path = zip_of(tmp_path / "evil.zip", **{"ink/ant/1.png": b"x", name: b"evil"})
    with pytest.raises(ValueError, match="leads out of the dataset's folder"):
        import_dataset(path, "mine", tmp_path / "below" / "data")
    assert left_in(tmp_path / "below" / "data") == []
    assert left_in(tmp_path) == ["below", "evil.zip"]


@pytest.mark.parametrize("name", ["../out.png", "/out.png"])
def test_a_tar_cannot_write_outside(tmp_path: Path, name: str) -> None:
    path = tar_with(tmp_path / "evil.tar", tarfile.TarInfo(name), b"evil")
    with pytest.raises(ValueError, match="leads out of the dataset's folder"):
        import_dataset(path, "mine", tmp_path / "data")
    assert left_in(tmp_path / "data") == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("ink/ant/1.png")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(ValueError, match="is a link or a device"):
        import_dataset(tar_with(tmp_path / "evil.tar", member), "mine", tmp_path / "data")


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        member = zipfile.ZipInfo("ink/ant/1.png")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(ValueError, match="is a link or a device"):
        import_dataset(tmp_path / "evil.zip", "mine", tmp_path / "data")


def test_a_link_in_a_folder_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "ink" / "ant" / "link.png").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match=r"ink/ant/link.png is a link"):
        import_dataset(tree, "mine", tmp_path / "data")


def test_a_pipe_in_a_folder_is_refused(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "ink" / "pipe.png")
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        import_dataset(tree, "mine", tmp_path / "data")


def test_a_name_twice_in_an_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("ink/ant/1.png", b"one")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("ink/ant/1.png", b"two")
    with pytest.raises(ValueError, match=r"is in it twice, or is both a file and a folder; nothing was taken in"):
        import_dataset(tmp_path / "twice.zip", "mine", tmp_path / "data")


@pytest.mark.parametrize("names", [("ink/ant", "ink/ant/1.png"), ("ink/ant/1.png", "ink/ant")])
def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    archive = zip_of(tmp_path / "both.zip", **dict.fromkeys(names, b""))
    with pytest.raises(ValueError, match="is both a file and a folder"):
        import_dataset(archive, "mine", tmp_path / "data")


@pytest.mark.parametrize(("name", "said"), [("mine", "holds no images"), ("vlcs", "no folder for")])
def test_what_is_wrong_with_an_archive_is_said_of_the_archive(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=said) as caught:
        import_dataset(zip_of(tmp_path / "few.zip", **{"notes.txt": b"", "a/b.txt": b""}), name, tmp_path / "data")
    assert str(tmp_path / "few.zip") in str(caught.value)
    assert f".{name}." not in str(caught.value)
    assert left_in(tmp_path / "data") == []


@pytest.mark.parametrize(("files", "passes"), [(12, True), (11, False)])
def test_no_more_files_than_allowed(tree: Path, tmp_path: Path, files: int, passes: bool) -> None:
    limits = Limits(files=files)
    if passes:
        assert len(import_dataset(tree, "mine", tmp_path / "data", limits)) == 12
    else:
        with pytest.raises(ValueError, match="more than 11 files"):
            import_dataset(tree, "mine", tmp_path / "data", limits)


@pytest.mark.parametrize(("short", "passes"), [(0, True), (1, False)])
def test_no_more_bytes_than_allowed(tree: Path, tmp_path: Path, short: int, passes: bool) -> None:
    limits = Limits(bytes=sum(path.stat().st_size for path in tree.rglob("*.png")) - short)
    if passes:
        assert len(import_dataset(as_zip(tree, tmp_path), "mine", tmp_path / "data", limits)) == 12
    else:
        with pytest.raises(ValueError, match="GiB unpacked"):
            import_dataset(as_zip(tree, tmp_path), "mine", tmp_path / "data", limits)


def test_a_bomb_is_stopped_by_what_comes_out_of_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ink/ant/1.png", bytes(50_000_000))
    with pytest.raises(ValueError, match="GiB unpacked"):
        import_dataset(tmp_path / "bomb.zip", "mine", tmp_path / "data", Limits(bytes=1_000_000))
    assert left_in(tmp_path / "data") == []


def test_a_broken_archive_is_refused_in_one_line(tree: Path, tmp_path: Path) -> None:
    path = as_tar(tree, tmp_path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ValueError, match="cannot be unpacked") as refusal:
        import_dataset(path, "mine", tmp_path / "data")
    assert "\n" not in str(refusal.value)
    assert left_in(tmp_path / "data") == []


def test_a_zip_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "archive.zip", **{"ink/ant/1.png": b"some content"})
    path.write_bytes(path.read_bytes().replace(b"some content", b"sore content", 1))
    with pytest.raises(ValueError, match="cannot be unpacked"):
        import_dataset(path, "mine", tmp_path / "data")


@pytest.mark.parametrize("packed", ["gz", "xz"])
def test_a_compressed_tar_with_a_changed_byte_is_refused(tmp_path: Path, packed: str) -> None:
    noise = random.Random(0).randbytes(20_000)  # cannot be compressed, so a changed byte is one of the content
    member = tarfile.TarInfo("ink/ant/1.png")
    path = tar_with(tmp_path / f"archive.tar.{packed}", member, noise, f"w:{packed}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        import_dataset(path, "mine", tmp_path / "data")
    assert left_in(tmp_path / "data") == []


def test_a_damaged_lzma_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "archive.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("ink/ant/1.png", b"abc" * 1000)
    content = bytearray((tmp_path / "archive.zip").read_bytes())
    content[60:70] = bytes(10)
    (tmp_path / "archive.zip").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        import_dataset(tmp_path / "archive.zip", "mine", tmp_path / "data")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(ValueError, match="neither a zip, a tar nor a folder"):
        import_dataset(tmp_path / "notes.txt", "mine", tmp_path / "data")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        import_dataset(tmp_path / "absent.zip", "mine", tmp_path / "data")


def test_an_archive_without_images_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no images"):
        import_dataset(zip_of(tmp_path / "empty.zip", **{"ink/notes.txt": b""}), "mine", tmp_path / "data")
    assert left_in(tmp_path / "data") == []


def test_what_is_there_already_is_never_overwritten(tree: Path, tmp_path: Path) -> None:
    import_dataset(tree, "mine", tmp_path / "data")
    with pytest.raises(FileExistsError, match="is there already"):
        import_dataset(tree, "mine", tmp_path / "data")


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "-x", "a b", "../up"])
def test_a_name_that_is_no_folders_name_is_refused(tree: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a dataset's name is letters"):
        import_dataset(tree, name, tmp_path / "data")
