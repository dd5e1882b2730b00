"""Where datasets lie, and any of them by name or path."""

import os
from pathlib import Path

from styleshift import named
from styleshift.data import catalog
from styleshift.data.catalog.folder import Folder
from styleshift.data.catalog.table import Table
from styleshift.data.domains import Domains, plain
from styleshift.data.facts import Catalogued, Made

TABLE_ENDINGS = (".csv", ".tsv", ".parquet")
OWN = ("folder", "table")


def data_root(given: Path | None = None) -> Path:
    """Where datasets lie: `given`, else ``$STYLESHIFT_DATA``, else ``./data`` if it exists, else the user's cache."""
    if given is not None:
        return given
    if named_by_user := os.environ.get("STYLESHIFT_DATA"):
        return Path(named_by_user)
    return Path("data") if Path("data").is_dir() else user_cache() / "data"


def user_cache() -> Path:
    """``$XDG_CACHE_HOME/styleshift``, else ``~/.cache/styleshift``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "styleshift"


def dataset(name_or_path: str | Path, root: Path | None = None) -> Domains:
    """A dataset of the catalog by its name, or the user's own by the path of its folder or table.

    name_or_path: "pacs"; a folder holding domain/class/file, also by name below the data root; a CSV or Parquet file.
    root: the folder that datasets lie in; see `data_root`.
    """
    entry, place = located(name_or_path, root)
    return entry.load(place)


def located(name_or_path: str | Path, root: Path | None = None) -> tuple[Catalogued, Path]:
    """What loads a dataset, and the folder or file to load it from, made if it can be; arguments as in `dataset`."""
    wanted = str(name_or_path)
    if entry := catalogued(wanted):
        place = folder_of(entry, data_root(root))
        if isinstance(entry, Made):
            entry.make(place)
        return entry, place
    for path in (Path(wanted), data_root(root) / wanted):
        if path.suffix.lower() in TABLE_ENDINGS and path.is_file():
            return Table(), path
        if path.is_dir():
            return Folder(), path
    raise KeyError(
        f"there is no dataset or folder {wanted!r} (looked in . and {data_root(root)}); known: {', '.join(known())}."
    )


def known() -> tuple[str, ...]:
    """The names of the datasets in the catalog."""
    return tuple(name for name in named.names(catalog) if name not in OWN)


def catalogued(name: str) -> Catalogued | None:
    """The entry of the catalog with this name in any spelling ("PACS", "office-home"); None when there is none."""
    for entry_name in known():
        if plain(entry_name) == plain(name):
            entry: Catalogued = named.build(catalog, entry_name)
            return entry
    return None


def folder_of(entry: Catalogued, root: Path) -> Path:
    """The dataset's folder below the data root, found in any spelling; where it would be, if it is not there.

    One that is made here would be in the user's cache: a data root is the user's, and may be read-only.
    """
    if root.is_dir():
        for folder in sorted(root.iterdir()):
            if folder.is_dir() and plain(folder.name) == plain(entry.facts.folder):
                return folder
    return (user_cache() / "data" if isinstance(entry, Made) else root) / entry.facts.folder
