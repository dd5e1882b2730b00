"""A place to run what pages show."""

from pathlib import Path

import pytest

from styleshift.experiments.generated import generated
from styleshift.experiments.scales import Generated


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, but for the reader's own images: `mine`, of domain/class/file."""
    for name in ("STYLESHIFT_DATA", "STYLESHIFT_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    drawn = generated("mine", ("day", "night", "rain"), Generated(images=6, classes=2, size=32), tmp_path)
    drawn.root.rename(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path
