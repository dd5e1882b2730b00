"""The command line, called in this process; nothing of the surroundings gets in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from styleshift.backbones import zoo
from styleshift.cli.main import app


@dataclass(frozen=True)
class Said:
    """How a command ended. out, err: what it wrote."""

    status: int
    out: str
    err: str


Command = Callable[..., Said]


def _called(*arguments: object) -> Said:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def styleshift(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Calls the command line in an empty folder: `styleshift("table", "pacs-original", ...)`."""
    for name in ("STYLESHIFT_DATA", "STYLESHIFT_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(zoo, "published", lambda library, name: None)  # no test asks the network
    monkeypatch.chdir(tmp_path)
    return _called


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which mixstyle was trained for target sketch, at the smoke scale."""
    store = tmp_path_factory.mktemp("smoke")
    chosen = ("--only", "target=sketch", "--only", "method=mixstyle")
    said = _called("run", "pacs-original", "--scale", "smoke", *chosen, "--store", store)
    assert said.status == 0, said
    return store


@pytest.fixture
def model(smoke: Path) -> Path:
    """The folder of its model."""
    (folder,) = (smoke / "models").iterdir()
    return folder


@pytest.fixture
def pictures(smoke: Path) -> Path:
    """A folder of domain/class/file: 4 domains, 7 classes, 84 images."""
    return next(folder for folder in (smoke / "generated").iterdir() if folder.is_dir())
