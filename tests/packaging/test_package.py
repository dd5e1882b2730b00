"""What is built and installed: everything that the package reads at run time is in it."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = PROJECT["tool"]["hatch"]["build"]["targets"]


def test_a_wheel_takes_the_package_with_its_data_and_the_recipes() -> None:
    wheel = BUILD["wheel"]
    assert wheel["packages"] == ["src/styleshift"]
    assert wheel["force-include"] == {"recipes": "styleshift/experiments/shipped"}
    assert (ROOT / "src/styleshift/py.typed").is_file()


def test_a_source_archive_takes_only_what_is_there() -> None:
    assert all((ROOT / name).exists() for name in BUILD["sdist"]["include"])


def test_an_extra_that_a_message_or_a_script_names_exists() -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    texts = [path.read_text() for path in [*(ROOT / "src").rglob("*.py"), ROOT / "README.md"]]
    asked = {word.split("]")[0] for text in texts for word in text.split("styleshift[")[1:]} - {"{extra}"}
    prepared = {line.split()[1] for path in (ROOT / "scripts").iterdir() for line in path.read_text().splitlines()
                if line.startswith("prepare ")}  # fmt: skip
    assert asked | {name for names in prepared for name in names.split(",")} <= extras


def test_the_citation_names_this_version_and_the_paper() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['project']['version']}\n" in text
    assert "Test-Time Style Shifting: Handling Arbitrary Styles in Domain Generalization" in text


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("build"), reason="the package `build` is not installed")
def test_what_is_built_installs_and_runs(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "build", str(ROOT), "--outdir", str(tmp_path)], check=True)
    (wheel,), (archive,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    recipes = {f"styleshift/experiments/shipped/{path.name}" for path in (ROOT / "recipes").glob("*.toml")}
    assert recipes | {"styleshift/py.typed", "styleshift/experiments/paper_tables.json"} <= names
    with tarfile.open(archive) as opened:
        assert any(name.endswith("/recipes/quickstart.toml") for name in opened.getnames())
    installed = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--target", installed, wheel], check=True)
    code = "from styleshift.cli.main import main; import styleshift; print(styleshift.__file__); main()"
    for asked in ("--version", "recipes"):
        done = subprocess.run(
            [sys.executable, "-c", code, asked],
            env={"PYTHONPATH": str(installed)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(str(installed))
    assert "quickstart" in done.stdout
