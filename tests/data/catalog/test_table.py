"""A table of the user's own."""

from pathlib import Path

import pytest

from styleshift.data.catalog.table import Table
from styleshift.data.decoding import rgb

ROWS = [("ink/ant/000.png", "ant", "ink"), ("oil/bee/001.png", "bee", "oil"), ("ink/bee/000.png", "bee", "ink")]


def csv(path: Path, rows: list[tuple[str, ...]], header: str = "path,class,domain", separator: str = ",") -> Path:
    path.write_text("\n".join([header.replace(",", separator), *(separator.join(row) for row in rows)]) + "\n")
    return path


def test_it_reads_rows_in_their_order(tree: Path) -> None:
    dataset = Table().load(csv(tree / "mine.csv", ROWS))
    assert dataset.name == "mine"
    assert dataset.files == tuple(row[0] for row in ROWS)
    assert [dataset.class_names[class_] for class_ in dataset.classes] == ["ant", "bee", "bee"]
    assert [dataset.domain_names[domain] for domain in dataset.domains] == ["ink", "oil", "ink"]
    assert rgb(dataset.path(1)).size == rgb(tree / "oil/bee/001.png").size


def test_it_reads_tabs(tree: Path) -> None:
    assert len(Table().load(csv(tree / "mine.tsv", ROWS, separator="\t"))) == 3


def test_it_reads_a_byte_order_mark(tree: Path) -> None:
    path = csv(tree / "mine.csv", ROWS)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(Table().load(path)) == 3


def test_it_reads_parquet_as_it_reads_csv(tree: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the data extra is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(("path", "class", "domain"), map(list, zip(*ROWS, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tree / "mine.parquet")
    assert Table().load(tree / "mine.parquet").files == Table().load(csv(tree / "mine.csv", ROWS)).files


def test_columns_may_have_other_names(tree: Path) -> None:
    path = csv(tree / "mine.csv", ROWS, header="image,label,style")
    assert len(Table(path="image", class_="label", domain="style").load(path)) == 3


def test_numbers_are_in_order_of_size(tree: Path) -> None:
    rows = [("ink/ant/000.png", number, "ink") for number in ("10", "9", "100")]
    assert Table().load(csv(tree / "mine.csv", rows)).class_names == ("9", "10", "100")


def test_absolute_paths_are_below_what_they_share(tree: Path, tmp_path: Path) -> None:
    rows = [(str(tree / path), class_, domain) for path, class_, domain in ROWS]
    dataset = Table().load(csv(tmp_path / "mine.csv", rows))
    assert dataset.root == tree
    assert dataset.files == tuple(row[0] for row in ROWS)


def test_a_missing_column_is_named_beside_those_there_are(tree: Path) -> None:
    with pytest.raises(ValueError, match="needs columns path, class, domain; it has path, label"):
        Table().load(csv(tree / "mine.csv", [("a", "b")], header="path,label"))


def test_an_empty_cell_is_named_by_its_row(tree: Path) -> None:
    with pytest.raises(ValueError, match="row 3: path, class and domain are all needed"):
        Table().load(csv(tree / "mine.csv", [ROWS[0], ("oil/bee/001.png", "", "oil")]))


@pytest.mark.parametrize("header", ["path,class,domain", ""])
def test_a_table_without_rows_is_refused(tree: Path, header: str) -> None:
    with pytest.raises(ValueError, match=r"has no rows|it has none|needs columns"):
        Table().load(csv(tree / "mine.csv", [], header=header))


def test_a_table_that_is_not_there_is_refused(tree: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no table"):
        Table().load(tree / "absent.csv")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01path", b"path,class,domain\n" + b"a" * 200_000 + b",b,c\n"])
def test_what_is_no_text_is_refused(tree: Path, content: bytes) -> None:
    (tree / "mine.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"mine.csv is not a table of UTF-8 text \("):
        Table().load(tree / "mine.csv")


def test_what_is_no_parquet_is_refused(tree: Path) -> None:
    pytest.importorskip("pyarrow", reason="the data extra is not installed")
    (tree / "mine.parquet").write_text("path,class,domain")
    with pytest.raises(ValueError, match=r"mine.parquet is not a whole Parquet file \("):
        Table().load(tree / "mine.parquet")


def test_a_parquet_table_lacks_columns_as_a_csv_does(tree: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the data extra is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"path": ["a"], "label": ["b"]}), tree / "mine.parquet")
    with pytest.raises(ValueError, match="needs columns path, class, domain; it has path, label"):
        Table().load(tree / "mine.parquet")
