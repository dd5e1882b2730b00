"""Images out of Parquet files."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from styleshift.data.decoding import rgb
from styleshift.data.extracting import extract
from styleshift.data.facts import Facts, Mirror
from styleshift.data.layouts import Names
from styleshift.data.manifests import digest_of

pa = pytest.importorskip("pyarrow", reason="the data extra is not installed")
pq = pytest.importorskip("pyarrow.parquet")

FACTS = Facts(
    title="Toy",
    folder="toy",
    page="toy.org",
    names=Names(domains=("ink", "oil"), classes=("ant", "bee"), spellings={"Oil Painting": "oil"}),
    mirror=Mirror("someone/toy", rows=3),
)


def image_bytes(number: int, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (6, 5, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def write(path: Path, rows: list[tuple[bytes, str | None, Any, Any]], **class_labels: list[str]) -> Path:
    table = pa.table(
        {
            "image": [{"bytes": content, "path": name} for content, name, _, _ in rows],
            "domain": [domain for _, _, domain, _ in rows],
            "label": [label for _, _, _, label in rows],
        }
    )
    features = {column: {"_type": "ClassLabel", "names": names} for column, names in class_labels.items()}
    described = json.dumps({"info": {"features": features}}).encode()
    pq.write_table(table.replace_schema_metadata({b"huggingface": described}), path)
    return path


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_images_keep_their_bytes_and_names_by_domain_and_class(tmp_path: Path) -> None:
    rows = [(image_bytes(0), "a.png", "ink", "ant"), (image_bytes(1), "b.png", "Oil Painting", "bee")]
    count = extract([write(tmp_path / "t.parquet", rows)], tmp_path / "toy", FACTS, {})
    assert (count, files_below(tmp_path / "toy")) == (2, ["ink/ant/a.png", "oil/bee/b.png"])
    assert (tmp_path / "toy/oil/bee/b.png").read_bytes() == image_bytes(1)


def test_numbers_are_read_as_the_names_the_mirror_gives_them(tmp_path: Path) -> None:
    table = write(
        tmp_path / "t.parquet", [(image_bytes(0), "a.png", 1, 1)], label=["bee", "ant"], domain=["oil", "ink"]
    )
    extract([table], tmp_path / "toy", FACTS, {})
    assert files_below(tmp_path / "toy") == ["ink/ant/a.png"]


def test_images_without_a_name_or_with_one_that_is_taken_get_numbers(tmp_path: Path) -> None:
    rows = [
        (image_bytes(0), "a.png", "ink", "ant"),
        (image_bytes(1), None, "ink", "ant"),
        (image_bytes(2, "JPEG"), "a.png", "ink", "ant"),
    ]
    extract([write(tmp_path / "t.parquet", rows)], tmp_path / "toy", FACTS, {})
    assert files_below(tmp_path / "toy") == ["ink/ant/000001.png", "ink/ant/000002.jpg", "ink/ant/a.png"]


def test_the_published_lists_that_a_mirror_keeps_apart_are_written(tmp_path: Path) -> None:
    facts = replace(FACTS, mirror=Mirror("someone/toy", rows=3, lists=True))
    train = [(image_bytes(0), "a.png", "ink", "bee"), (image_bytes(1), "b.png", "oil", "ant")]
    tables = [
        write(tmp_path / "test-00000-of-00001.parquet", [(image_bytes(2), "a.png", "ink", "ant")]),
        write(tmp_path / "train-00000-of-00001.parquet", train),
    ]
    extract(tables, tmp_path / "toy", facts, {})
    lists = {path.name: path.read_text() for path in (tmp_path / "toy" / "splits").iterdir()}
    assert lists == {
        "ink_train.txt": "ink/bee/a.png 1\n",
        "oil_train.txt": "oil/ant/b.png 0\n",
        "ink_test.txt": "ink/ant/a.png 0\n",
    }


def test_a_mirror_without_lists_brings_none(tmp_path: Path) -> None:
    extract([write(tmp_path / "train-0.parquet", [(image_bytes(0), "a.png", "ink", "ant")])], tmp_path, FACTS, {})
    assert not (tmp_path / "splits").exists()


def test_images_get_their_published_names_by_their_pixels(tmp_path: Path) -> None:
    (tmp_path / "known.png").write_bytes(image_bytes(0))
    published = {digest_of(tmp_path / "known.png"): "ink/ant/pic_007.jpg"}
    table = write(tmp_path / "t.parquet", [(image_bytes(0, "BMP"), "x.bmp", "ink", "ant")])
    extract([table], tmp_path / "toy", FACTS, published)
    assert files_below(tmp_path / "toy") == ["ink/ant/pic_007.jpg"]
    assert rgb(tmp_path / "toy/ink/ant/pic_007.jpg").tobytes() == rgb(tmp_path / "known.png").tobytes()


def test_images_of_other_pixels_are_known_by_a_published_name(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", [(image_bytes(0), "pic_007.jpg", "ink", "ant")])
    extract([table], tmp_path / "toy", FACTS, {"0" * 32: "ink/ant/pic_007.jpg"})
    assert files_below(tmp_path / "toy") == ["ink/ant/pic_007.jpg"]


def test_an_image_that_was_never_published_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", [(image_bytes(0), "x.png", "ink", "ant")])
    with pytest.raises(ValueError, match=r"an? ant in ink \(x.png\) that is none of Toy's images"):
        extract([table], tmp_path / "toy", FACTS, {"0" * 32: "ink/ant/1.png"})


@pytest.mark.parametrize("name", ["../../../evil.png", "/evil.png", "..\\evil.png"])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    extract([write(tmp_path / "t.parquet", [(image_bytes(0), name, "ink", "ant")])], tmp_path / "toy", FACTS, {})
    assert files_below(tmp_path) == ["t.parquet", "toy/ink/ant/evil.png"]


@pytest.mark.parametrize(("domain", "label"), [("chalk", "ant"), ("ink", "cow")])
def test_an_unknown_domain_or_class_is_refused(tmp_path: Path, domain: str, label: str) -> None:
    table = write(tmp_path / "t.parquet", [(image_bytes(0), "x.png", domain, label)])
    with pytest.raises(ValueError, match=f"domain '{domain}', class '{label}', unknown here"):
        extract([table], tmp_path / "toy", FACTS, {})


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image": [1], "style": [2]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="someone/toy has columns image, style, and no domain"):
        extract([tmp_path / "t.parquet"], tmp_path / "toy", FACTS, {})


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", [(b"no image", None, "ink", "ant")])
    with pytest.raises(ValueError, match=r"ant in ink \(no name\) is no image"):
        extract([table], tmp_path / "toy", FACTS, {})


def test_it_reports_its_progress_over_all_tables(tmp_path: Path) -> None:
    tables = [write(tmp_path / f"{n}.parquet", [(image_bytes(n), f"{n}.png", "ink", "ant")]) for n in range(2)]
    reports: list[tuple[int, int]] = []
    extract(tables, tmp_path / "toy", FACTS, {}, lambda done, total: reports.append((done, total)))
    assert reports == [(1, 2), (2, 2)]
