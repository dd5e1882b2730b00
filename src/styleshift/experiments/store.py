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

from styleshift.experiments.record import Record, records_in
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
    """A folder of runs. Any number of these may be open on one folder, in any number of processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models = folder / "models"
        self._records = folder / "records"
        self._records.mkdir(parents=True, exist_ok=True)
        with self._database() as database:
            database.executescript(_SCHEMA)
        self._index()

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
        """Keep `record` as records/NAME.json, in place of an older one with its key."""
        text = record.text()
        with atomically(self._records / f"{name}.json") as draft:
            draft.write_text(text, encoding="utf-8")
        # the file first: if this process dies here, the next one to open the store finds it
        with self._database() as database:
            database.execute(
                "REPLACE INTO records VALUES (?, ?, ?, ?)", (record.key, record.cell, f"{name}.json", text)
            )

    def take_in(self, folder: Path) -> int:
        """Copy the records below `folder` that are not here yet; says how many they were."""
        known = {key for (key,) in self._rows("SELECT key FROM records")}
        new = {path: record for path, record in records_in(folder).items() if record.key not in known}
        for path, record in new.items():
            # a stem that says no key may come from two folders
            named = path.stem if record.key[:12] in path.stem else f"{path.stem}_{record.key[:12]}"
            self.add(record, named)
        return len(new)

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

    def _index(self) -> None:
        """Make the index say what is in the folder: it may have been lost, and records copied here or removed."""
        known = {file for (file,) in self._rows("SELECT file FROM records")}
        for file in known - {path.name for path in self._records.glob("*.json")}:
            with self._database() as database:
                database.execute("DELETE FROM records WHERE file = ?", (file,))
        for path in sorted(self._records.glob("*.json")):
            if path.name not in known:
                text = path.read_text(encoding="utf-8")
                record = Record.of_text(text, path)
                with self._database() as database:
                    database.execute(
                        "REPLACE INTO records VALUES (?, ?, ?, ?)", (record.key, record.cell, path.name, text)
                    )

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._database() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
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
