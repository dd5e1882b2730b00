"""Files that are there whole or not at all, and names that stay where they are put."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, which takes its place when the block ends well and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # not tempfile: its files can be read by their owner alone, and would stay so
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    draft.touch(exist_ok=False)
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def path_part(text: str) -> str:
    """`text`, which may be a path or anything else, as one part of a path."""
    # its end, which tells a run's folders apart; file systems take 255 bytes
    return re.sub(r"[^\w.+-]", "-", text)[-200:]
