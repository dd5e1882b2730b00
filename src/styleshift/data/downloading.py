"""Downloading one file: resumed where it broke off, tried again, verified, and there whole or not at all."""

import hashlib
import http.client
import logging
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from styleshift.data.decoding import Progress

log = logging.getLogger(__name__)

CHUNK = 1 << 20
SECONDS_WITHOUT_DATA = 60
PASSING = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Remote:
    """A file to download.

    url: http or https.
    size: in bytes; None when unknown.
    sha256: in hexadecimal; None when unknown.
    """

    url: str
    size: int | None = None
    sha256: str | None = None


def download(
    remote: Remote, path: Path, progress: Progress | None = None, attempts: int = 5, pause: float = 2.0
) -> Path:
    """The file at `path`, downloaded unless it is there already; ValueError when it is not what was announced.

    What an interrupted call has got is kept beside `path` as `.part`, and the next call goes on from there.

    progress: called with how many bytes are here and how many there are.
    attempts: how often to try before giving up; one that got further starts the count again.
    pause: seconds to wait after a failure, doubled each time.
    """
    if path.is_file():
        if _mistake(remote, path) is None:
            return path
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    failures = 0
    while True:
        before = part.stat().st_size if part.is_file() else 0
        try:
            _continue(remote, part, progress)
            break
        except PASSING as failure:
            failures = 1 if part.is_file() and part.stat().st_size > before else failures + 1
            if _is_final(failure) or failures >= attempts:
                raise ConnectionError(f"{remote.url} cannot be downloaded ({failure}); run again to go on.") from None
            log.info("%s: %s; trying again", remote.url, failure)
            time.sleep(pause * 2 ** (failures - 1))
    if mistake := _mistake(remote, part):
        part.unlink()
        raise ValueError(f"{remote.url} {mistake}; what came is thrown away.")
    part.replace(path)
    return path


def _continue(remote: Remote, part: Path, progress: Progress | None) -> None:
    """Append to `part` what is missing of it; http.client.IncompleteRead when the connection ends early."""
    here = part.stat().st_size if part.is_file() else 0
    if remote.size is not None and here == remote.size:
        return
    headers = {"Range": f"bytes={here}-"} if here else {}
    try:
        request = urllib.request.Request(remote.url, headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_DATA) as response:
            if response.status != http.HTTPStatus.PARTIAL_CONTENT:
                # the server sends all of it, from the start
                here = 0
            announced = response.headers.get("Content-Length")
            total = here + int(announced) if announced else remote.size
            _make_sure_of_space(part, (total or 0) - here)
            with part.open("ab" if here else "wb") as file:
                while chunk := response.read(CHUNK):
                    file.write(chunk)
                    here += len(chunk)
                    if progress:
                        progress(here, total or here)
    except urllib.error.HTTPError as refusal:
        if refusal.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            # longer than the file there is: begin again
            part.unlink()
        raise
    if total is not None and here < total:
        raise http.client.IncompleteRead(b"", total - here)


def _is_final(failure: Exception) -> bool:
    """Whether the server's answer will be the same next time: refusals are, but for timeouts, limits and ranges."""
    return isinstance(failure, urllib.error.HTTPError) and failure.code < 500 and failure.code not in (408, 416, 429)


def _mistake(remote: Remote, path: Path) -> str | None:
    """In what the file at `path` differs from what was announced; None when it does not."""
    size = path.stat().st_size
    if remote.size is not None and size != remote.size:
        return f"has {size} bytes instead of {remote.size}"
    if remote.sha256 is not None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != remote.sha256.lower():
            return f"has the sha256 {digest[:12]}... instead of {remote.sha256[:12]}..."
    return None


def _make_sure_of_space(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise OSError(f"{needed / 2**30:.1f} GiB are still to come, and {part.parent} has {free / 2**30:.1f} GiB free.")
