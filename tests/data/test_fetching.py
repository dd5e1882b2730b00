"""Getting a dataset from its mirror: a small one, on a server on the loopback that answers as Hugging Face's does."""

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from styleshift.data.domains import Domains
from styleshift.data.facts import Facts, Mirror
from styleshift.data.fetching import fetch, listed
from styleshift.data.layouts import Names, tree

pa = pytest.importorskip("pyarrow", reason="the data extra is not installed")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("huggingface_hub", reason="the data extra is not installed")

COMMIT = "c" * 40


@dataclass(frozen=True)
class Toy:
    """Four images in two files of a mirror."""

    facts: ClassVar[Facts] = Facts(
        title="Toy",
        folder="toy",
        names=Names(domains=("ink", "oil"), classes=("ant",)),
        mirror=Mirror("someone/toy", rows=4),
    )

    def load(self, root: Path) -> Domains:
        return tree(root, "Toy", self.facts.names)


@dataclass(frozen=True)
class Larger(Toy):
    """The same mirror, of which one image more is expected."""

    facts: ClassVar[Facts] = Facts(
        title="Toy", folder="toy", names=Toy.facts.names, mirror=Mirror("someone/toy", rows=5)
    )


@dataclass(frozen=True)
class Homemade(Toy):
    """A set without a mirror."""

    facts: ClassVar[Facts] = Facts(title="Toy", folder="toy", page="toy.org")


def table_of(*numbers: int) -> bytes:
    images = []
    for number in numbers:
        file = io.BytesIO()
        Image.fromarray(np.full((4, 4, 3), number, dtype=np.uint8)).save(file, "PNG")
        images.append({"bytes": file.getvalue(), "path": f"{number}.png"})
    domains = ["ink" if number % 2 else "oil" for number in numbers]
    written = io.BytesIO()
    pq.write_table(pa.table({"image": images, "domain": domains, "label": ["ant"] * len(numbers)}), written)
    return written.getvalue()


@pytest.fixture
def mirror(server: Any) -> Any:
    """A server with the mirror's two tables, and a readme."""
    tables = {"data/train-0.parquet": table_of(0, 1), "data/train-1.parquet": table_of(2, 3)}
    siblings: list[dict[str, Any]] = [{"rfilename": "README.md", "size": 3}]
    for name, content in tables.items():
        server.files[f"/datasets/someone/toy/resolve/{COMMIT}/{name}"] = content
        digest = hashlib.sha256(content).hexdigest()
        lfs = {"sha256": digest, "size": len(content), "pointerSize": 130}
        siblings.append({"rfilename": name, "size": len(content), "lfs": lfs})
    about = {"id": "someone/toy", "sha": COMMIT, "siblings": siblings, "tags": [], "private": False, "downloads": 0}
    server.files["/api/datasets/someone/toy/revision/main?blobs=true"] = json.dumps(about).encode()
    return server


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_it_downloads_and_unpacks_a_dataset(mirror: Any, tmp_path: Path) -> None:
    dataset = fetch(Toy(), tmp_path / "data", mirror.url)
    assert dataset.root == tmp_path / "data" / "toy"
    assert dataset.files == ("ink/ant/1.png", "ink/ant/3.png", "oil/ant/0.png", "oil/ant/2.png")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["toy"]


def test_it_asks_for_the_commit_it_was_told_of(mirror: Any) -> None:
    remotes = listed(Mirror("someone/toy", rows=4), mirror.url)
    assert sorted(remotes) == ["data/train-0.parquet", "data/train-1.parquet"]
    assert all(f"/resolve/{COMMIT}/" in remote.url and remote.sha256 for remote in remotes.values())


def test_interrupted_between_files_it_goes_on_with_the_next(mirror: Any, tmp_path: Path) -> None:
    second = f"/datasets/someone/toy/resolve/{COMMIT}/data/train-1.parquet"
    content = mirror.files.pop(second)
    with pytest.raises(ConnectionError, match="HTTP Error 404"):
        fetch(Toy(), tmp_path, mirror.url)
    assert not (tmp_path / "toy").exists()
    mirror.files[second], mirror.asked = content, []
    assert len(fetch(Toy(), tmp_path, mirror.url)) == 4
    assert [path for path, _ in mirror.asked if path.endswith(".parquet")] == [second]


def test_a_table_with_a_wrong_checksum_is_refused_and_nothing_is_there(mirror: Any, tmp_path: Path) -> None:
    name = f"/datasets/someone/toy/resolve/{COMMIT}/data/train-0.parquet"
    mirror.files[name] = mirror.files[name][:-1] + b"?"
    with pytest.raises(ValueError, match=r"train-0\.parquet has the sha256"):
        fetch(Toy(), tmp_path, mirror.url)
    assert not (tmp_path / "toy").exists()


def test_another_count_than_expected_is_refused(mirror: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds 4 images; 5 were expected"):
        fetch(Larger(), tmp_path, mirror.url)
    assert not (tmp_path / "toy").exists()


def test_what_is_there_already_is_not_touched(mirror: Any, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    with pytest.raises(FileExistsError, match="is there already"):
        fetch(Toy(), tmp_path, mirror.url)
    assert mirror.asked == []


def test_a_set_without_a_mirror_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no public mirror known here\. Get it from toy\.org"):
        fetch(Homemade(), tmp_path)


def test_a_mirror_that_is_gone_is_said_in_one_line(server: Any, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="someone/toy cannot be reached") as refusal:
        fetch(Toy(), tmp_path, server.url)
    assert "\n" not in str(refusal.value)


def test_a_mirror_without_tables_has_changed(mirror: Any) -> None:
    with pytest.raises(ValueError, match=r"holds no images/\*\.parquet at main; the mirror has changed"):
        listed(Mirror("someone/toy", rows=4, files="images/*.parquet"), mirror.url)
