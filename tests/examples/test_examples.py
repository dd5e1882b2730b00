"""The examples: short, and they run as a reader would run them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ON_REAL_DATA = "pacs_sketch"  # trains for minutes on PACS: only its parameters are looked at
MOST_LINES = 60


def named(path: Path) -> str:
    return path.stem


@pytest.fixture(params=[path for path in EXAMPLES if path.stem != ON_REAL_DATA], ids=named)
def example(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    if "timm:" in path.read_text() and not (find_spec("timm") and find_spec("torchvision")):
        pytest.skip("the zoo extra is not installed")
    return path


def test_it_runs(example: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not list(tmp_path.iterdir())


def test_it_is_short(example: Path) -> None:
    assert len(example.read_text().splitlines()) < MOST_LINES


def test_it_says_how_it_is_run(example: Path) -> None:
    assert f"python examples/{example.name}" in example.read_text()
