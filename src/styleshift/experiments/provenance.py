"""What a result was made with: versions of what computes, and the commit of the source tree."""

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from styleshift import __version__


def versions() -> dict[str, str]:
    """Of whatever a number may depend on."""
    packages = {name: version(name) for name in ("torch", "numpy", "pillow")}
    return {"styleshift": __version__, "python": platform.python_version(), "machine": platform.machine(), **packages}


@cache
def commit() -> str | None:
    """Of the source tree, with `-dirty` where files were changed since; None for an installed package."""
    tree = Path(__file__).parents[3]
    if not (tree / ".git").exists():
        return None
    describe = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        said = subprocess.run(describe, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None
