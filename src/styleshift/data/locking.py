"""A lock that dies with its holder, and clearing up after one that was killed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time, among those on this machine; the system frees the lock of a process that is killed.

    Where the system has no such locks, none is held: two processes may then do the same work twice, and since files are
    written atomically, no harm.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("another process holds %s; waiting for it", path)
            fcntl.flock(file, fcntl.LOCK_EX)
        # the lock file stays: were it removed, a third process could lock a new file of the same name
        yield


def remove_drafts(path: Path) -> None:
    """Remove what killed processes had written of `path` (see `writing.atomically`); only with its lock held."""
    for draft in path.parent.glob(f".{path.name}.*"):
        draft.unlink(missing_ok=True)
