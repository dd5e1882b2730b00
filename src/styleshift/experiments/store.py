"""The store: the records of all runs in one folder, for any number of processes at once.

    records/NAME.json    one for each finished run: the truth, to be committed or copied
    models/NAME/         its weights and the sources' styles, or the checkpoint of a run under way
    store.sqlite         who is at work on what, and an index of the records; made anew if it is lost

A process claims a run before it works on it and says every few seconds that it is alive. A claim whose process is gone
(or has been silent for two minutes) is taken over, and the run goes on from its checkpoint.
"""

import logging
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styleshift.experiments.record import Record, records_in, text_of
from styleshift.writing import atomically

log = logging.getLogger(__name__)

BEAT_SECONDS = 10.0
SILENT_SECONDS = 120.0  # a machine that swaps or sleeps for less keeps its claims

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, cell TEXT NOT NULL, file TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS records_by_cell ON records (cell);
CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, host TEXT NOT NULL, process INTEGER NOT NULL, beat REAL NOT NULL
);
"""


def store_folder(given: Path | None = None) -> Path:
    """Where runs are kept: `given`, else ``$STYLESHIFT_STORE``, else ``./runs``."""
    return given or Path(os.environ.get("STYLESHIFT_STORE") or "runs")


class ClaimLostError(RuntimeError):
    """Another process has taken a run over."""


@dataclass(frozen=True)
class Claim:
    """The right to work on a run. lost: set when another process has taken it over."""

    key: str
    owner: str
    lost: threading.Event

    def expect_held(self) -> None:
        """ClaimLostError if it is not ours any more: two processes must not write to one folder."""
        if self.lost.is_set():
            raise ClaimLostError(f"run {self.key[:12]} was taken over by another process while this one was silent")


class Store:
    """A folder of runs. Any number of these may be open on one folder, in any number of processes.

    What is in its files counts as they are when it is opened. The folder is made when something is first kept in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models = folder / "models"
        self._records = folder / "records"
        self._is_open = False
        if folder.is_dir():
            self._open()

    def record(self, key: str) -> Record | None:
        """Of the run with this key, or None if it is not finished."""
        found = self._rows("SELECT text, file FROM records WHERE key = ?", key)
        return Record.of_text(*found[0]) if found else None

    def in_cell(self, cell: str) -> list[Record]:
        """Of all runs with these settings, whatever their data and first weights."""
        rows = self._rows("SELECT text, file FROM records WHERE cell = ? ORDER BY file", cell)
        return [Record.of_text(text, file) for text, file in rows]

    def records(self) -> list[Record]:
        """All of them."""
        return [Record.of_text(text, file) for text, file in self._rows("SELECT text, file FROM records ORDER BY file")]

    def add(self, record: Record, name: str) -> None:
        """Keep `record` as records/NAME.json, in place of all that have its key, whatever they are called."""
        text = record.text()
        with atomically(self._records / f"{name}.json") as draft:
            draft.write_text(text, encoding="utf-8")
        # the file first: if this process dies here, the next one to open the store finds it
        with self._database() as database:
            _insert(database, record, f"{name}.json", text)
        for path in self._records.glob("*.json"):
            text = _text_at(path) or ""
            # other files may name the key of a run, but have no facts
            if path.name != f"{name}.json" and record.key in text and '"facts"' in text:
                path.unlink(missing_ok=True)

    def take_in(self, folder: Path) -> int:
        """Copy the records below `folder` that are not here yet, and what they tested besides of a model known here.

        Says how many brought something. Of two trainings with one key the one that is here stays.
        """
        return sum(self._takes(path, record) for path, record in records_in(folder).items())

    def _takes(self, path: Path, record: Record) -> bool:
        here = self._rows("SELECT text, file FROM records WHERE key = ?", record.key)
        if not here:
            # a stem that says no key may come from two folders
            self.add(record, path.stem if record.key[:12] in path.stem else f"{path.stem}_{record.key[:12]}")
            return True
        known = Record.of_text(*here[0])
        joined = known.with_tests_of(record)
        if joined != known:
            self.add(joined, here[0][1].removesuffix(".json"))
        return joined != known

    def give_out(self, keys: Iterable[str], folder: Path) -> None:
        """Copy the records with these keys to `folder`, to be committed or sent."""
        for key in keys:
            for text, file in self._rows("SELECT text, file FROM records WHERE key = ?", key):
                with atomically(folder / file) as draft:
                    draft.write_text(text, encoding="utf-8")

    @contextmanager
    def claimed(self, key: str) -> Iterator[Claim | None]:
        """A claim on the run for the length of the block; None if a living process has it."""
        claim = Claim(key, uuid.uuid4().hex, threading.Event())
        if not self._take(claim):
            yield None
            return
        ended = threading.Event()
        beating = threading.Thread(target=self._beat, args=(claim, ended), daemon=True)
        beating.start()
        try:
            yield claim
        finally:
            ended.set()
            beating.join()
            with self._database() as database:
                database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, claim.owner))

    def living_claims(self) -> set[str]:
        """The keys of all runs that are being worked on."""
        rows = self._rows("SELECT key, host, process, beat FROM claims")
        return {key for key, host, process, beat in rows if _lives(host, process, beat)}

    def _take(self, claim: Claim) -> bool:
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")  # nobody else reads or writes claims until this one stands
            row = database.execute("SELECT host, process, beat FROM claims WHERE key = ?", (claim.key,)).fetchone()
            if row and _lives(*row):
                database.execute("ROLLBACK")
                return False
            if row:
                log.info("taking over run %s from process %d on %s, which is gone", claim.key[:12], row[1], row[0])
            here = (claim.key, claim.owner, socket.gethostname(), os.getpid(), time.time())
            database.execute("REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", here)
            database.execute("COMMIT")
        return True

    def _beat(self, claim: Claim, ended: threading.Event) -> None:
        while not ended.wait(BEAT_SECONDS):
            try:
                with self._database() as database:
                    beat = "UPDATE claims SET beat = ? WHERE key = ? AND owner = ?"
                    held = database.execute(beat, (time.time(), claim.key, claim.owner)).rowcount
            except OSError as error:  # a full disk, say: whoever trains will hear of it too, and there it is dealt with
                log.warning("could not renew the claim on run %s: %s", claim.key[:12], error)
                continue
            if not held:
                claim.lost.set()
                return

    def _open(self) -> None:
        self._records.mkdir(parents=True, exist_ok=True)
        with self._connection() as database:
            database.executescript(_SCHEMA)
            database.execute("BEGIN IMMEDIATE")  # what another process adds meanwhile, it adds to the index after us
            self._index(database)
            database.execute("COMMIT")
        self._is_open = True

    def _index(self, database: sqlite3.Connection) -> None:
        """Make the index say what the files say: it may have been lost, and files copied here, changed or removed."""
        known = dict(database.execute("SELECT file, text FROM records").fetchall())
        texts = {path.name: _text_at(path) for path in sorted(self._records.glob("*.json"))}
        for file in [file for file, text in known.items() if texts.get(file) != text]:
            database.execute("DELETE FROM records WHERE file = ?", (file,))
        for file, text in texts.items():
            if text is not None and text != known.get(file):
                record = Record.of_text(text, self._records / file)
                rows = database.execute("SELECT text, file FROM records WHERE key = ?", (record.key,)).fetchall()
                # of two files with one key, copied here by hand, always the same counts
                if all(_age(record) > _age(Record.of_text(*row)) for row in rows):
                    _insert(database, record, file, text)

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        if not self._is_open and not self.folder.is_dir():
            return []
        with self._database() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        if not self._is_open:
            self._open()
        with self._connection() as database:
            yield database

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # a connection a use: cheap beside a run, and nothing is shared between threads or forked processes
        path = self.folder / "store.sqlite"
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            yield database
        except sqlite3.OperationalError as error:
            raise OSError(f"cannot use {path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path} is damaged ({error}). Remove it: it is made anew from the records") from error
        finally:
            database.close()


def _insert(database: sqlite3.Connection, record: Record, file: str, text: str) -> None:
    database.execute("REPLACE INTO records VALUES (?, ?, ?, ?)", (record.key, record.cell, file, text))


def _age(record: Record) -> tuple[str, int]:
    """Larger for the later record, and the one that was tested in more ways."""
    return record.timing.finished, len(record.shifts) + len(record.costs)


def _text_at(path: Path) -> str | None:
    """None where another process has just removed the file."""
    try:
        return text_of(path)
    except FileNotFoundError:
        return None


def _lives(host: str, process: int, beat: float) -> bool:
    if time.time() - beat > SILENT_SECONDS:
        return False
    return host != socket.gethostname() or _is_running(process)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
