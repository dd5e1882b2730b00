"""Small real image files to load, and a web server to get them from."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from styleshift.data.catalog.folder import Folder
from styleshift.data.domains import Domains

Counts = Mapping[str, Mapping[str, int]]
MakeTree = Callable[[Path, Counts], Path]


@pytest.fixture
def make_tree() -> MakeTree:
    """Writes domain/class/file with these many images, each of its own colour, at odd sizes."""

    def make(root: Path, counts: Counts) -> Path:
        number = 0
        for domain, classes in counts.items():
            for class_, count in classes.items():
                folder = root / domain / class_
                folder.mkdir(parents=True)
                for index in range(count):
                    pixels = np.random.default_rng(number).integers(0, 256, (24 + index % 5, 20 + number % 7, 3))
                    Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{index:03}.png")
                    number += 1
        return root

    return make


@pytest.fixture
def tree(tmp_path: Path, make_tree: MakeTree) -> Path:
    """Two domains, three classes; `ink` has no `zebra`."""
    return make_tree(tmp_path / "tree", {"ink": {"ant": 3, "bee": 2}, "oil": {"ant": 2, "bee": 4, "zebra": 1}})


@pytest.fixture
def touch(tmp_path: Path) -> Callable[[Iterable[str]], Path]:
    """Makes empty files below a new folder, and gives the folder."""

    def make(files: Iterable[str]) -> Path:
        root = tmp_path / "dataset"
        for folder in {root / file.rpartition("/")[0] for file in files}:
            folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (root / file).touch()
        return root

    return make


@pytest.fixture
def small(tree: Path) -> Domains:
    """The tree as a dataset of twelve images."""
    return Folder().load(tree)


class Server(ThreadingHTTPServer):
    """Files at paths, on the loopback; says what was asked of it and, told to, breaks off or refuses.

    files: content by path.
    breaks: how many bytes each coming answer sends before its connection is cut; after those, all of it.
    refusals: the status each coming answer has instead; after those, none.
    resumes: whether ranges are understood.
    asked: the path and range of each request so far.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files: dict[str, bytes] = {}
        self.breaks: list[int] = []
        self.refusals: list[int] = []
        self.resumes = True
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        content = self.server.files.get(self.path)
        if self.server.refusals:
            return self.send_error(self.server.refusals.pop(0))
        if content is None:
            return self.send_error(404)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.resumes else 0
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Type", "application/json" if self.path.startswith("/api/") else "application/binary")
        self.end_headers()
        sent = content[start:]
        if self.server.breaks:
            sent = sent[: self.server.breaks.pop(0)]
            self.close_connection = True
        self.wfile.write(sent)
        return None

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A web server of this test's own."""
    with Server() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()
