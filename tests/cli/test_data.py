"""`styleshift data list | check | get | import`."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from styleshift.cli.main import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `styleshift data ...` in an empty folder, without settings from outside."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("STYLESHIFT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("COLUMNS", "100")

    def called(*arguments: object) -> Result:
        return CliRunner().invoke(app, ["data", *map(str, arguments)])

    return called


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A tree of the user's own: `oil` lacks the bee."""
    root = tmp_path / "mine"
    for number, place in enumerate(("ink/ant", "ink/bee", "oil/ant")):
        (root / place).mkdir(parents=True)
        Image.fromarray(np.full((8, 8, 3), 50 * number, dtype=np.uint8)).save(root / place / "1.png")
    return root


def assert_refused(result: Result, said: str) -> None:
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_list_names_every_dataset_and_says_which_are_here(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "PACS").mkdir(parents=True)
    result = run("list", "--data", tmp_path / "data")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert {"pacs", "vlcs", "office_home", "domainnet", "office_caltech"} <= set(lines)
    assert "here" in lines["pacs"]
    assert "here" not in lines["vlcs"]
    assert "9,991 images" in lines["pacs"]


def test_list_can_be_read_by_a_program(run: Run, tmp_path: Path) -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json", "--data", tmp_path).stdout)}
    assert rows["pacs"]["domains"] == ["art_painting", "cartoon", "photo", "sketch"]
    assert rows["pacs"]["there"] is False


def test_list_does_without_torch(plain_python: Callable[[str], str]) -> None:
    said = plain_python("""
import sys
from typer.testing import CliRunner
from styleshift.cli.main import app
assert CliRunner().invoke(app, ["data", "list"]).exit_code == 0
print("torch" in sys.modules)
""")
    assert said == "False\n"


def test_check_prints_the_table_and_what_is_missing(run: Run, mine: Path) -> None:
    result = run("check", mine)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["ink", "oil", "total"],
        ["ant", "1", "1", "2"],
        ["bee", "1", "0", "1"],
        ["total", "2", "1", "3"],
        ["note:", "oil", "has", "no", "bee"],
    ]
    assert result.stderr.endswith(": sound\n")


def test_check_of_a_damaged_image_names_it_and_ends_with_2(run: Run, mine: Path) -> None:
    (mine / "ink/bee/1.png").write_bytes(b"no image")
    result = run("check", mine)
    assert result.exit_code == 2
    assert "bad: ink/bee/1.png cannot be decoded" in result.stdout
    assert result.stderr.endswith(": problems: 1\n")


def test_check_can_be_read_by_a_program(run: Run, mine: Path) -> None:
    (mine / "ink/bee/1.png").write_bytes(b"no image")
    result = run("check", mine, "--json")
    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    assert answer["counts"] == {"ink": {"ant": 1, "bee": 1}, "oil": {"ant": 1, "bee": 0}}
    assert [problem["where"] for problem in answer["problems"]] == ["ink/bee/1.png"]


def test_check_of_an_empty_folder_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_refused(run("check", tmp_path / "empty"), "holds no images")


def test_check_of_a_set_that_is_not_there_says_how_to_get_it(run: Run, tmp_path: Path) -> None:
    assert_refused(run("check", "pacs", "--data", tmp_path), "styleshift data get pacs")


def test_check_of_an_unknown_name_is_refused(run: Run) -> None:
    assert_refused(run("check", "pax"), "there is no dataset or folder 'pax'")


def test_import_takes_a_zip_in_and_shows_what_it_holds(run: Run, mine: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        for file in mine.rglob("*.png"):
            archive.write(file, file.relative_to(mine))
    result = run("import", tmp_path / "mine.zip", "--as", "toy", "--data", tmp_path / "data")
    assert result.exit_code == 0
    assert f"toy is in {tmp_path / 'data' / 'toy'}" in result.stdout
    assert run("check", "toy", "--data", tmp_path / "data").exit_code == 0


def test_import_can_be_read_by_a_program(run: Run, mine: Path, tmp_path: Path) -> None:
    result = run("import", mine, "--as", "toy", "--data", tmp_path / "data", "--json")
    assert json.loads(result.stdout) == {"dataset": "toy", "root": str(tmp_path / "data" / "toy"), "images": 3}


def test_import_of_something_else_is_refused(run: Run, mine: Path, tmp_path: Path) -> None:
    assert_refused(run("import", mine, "--as", "pacs", "--data", tmp_path / "data"), "PACS is not in")


def test_get_of_an_unknown_name_is_refused(run: Run) -> None:
    assert_refused(run("get", "pax"), "there is no dataset 'pax' to get; known: demo_digits, domainnet")


def test_get_of_what_is_there_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pacs").mkdir()
    assert_refused(run("get", "pacs", "--data", tmp_path), "is there already")
