"""Getting a dataset from its public mirror: what is there, download, unpack, verify."""

import fnmatch
import logging
import shutil
from pathlib import Path, PurePosixPath

from styleshift.data.checking import Manifested
from styleshift.data.decoding import Progress
from styleshift.data.domains import Domains
from styleshift.data.downloading import Remote, download
from styleshift.data.extracting import extract
from styleshift.data.extras import huggingface_hub, pyarrow_parquet
from styleshift.data.facts import Catalogued, Mirror
from styleshift.data.progress import bar
from styleshift.data.roots import data_root

log = logging.getLogger(__name__)


def fetch(entry: Catalogued, root: Path | None = None, endpoint: str | None = None) -> Domains:
    """Download the dataset below the data root and load it. Interrupted, it goes on where it was when called again.

    root: the folder that datasets lie in; see `roots.data_root`.
    endpoint: another address than Hugging Face's own.
    """
    facts = entry.facts
    if facts.mirror is None:
        raise ValueError(f"{facts.title} has no public mirror known here. {facts.how}")
    place = data_root(root) / facts.folder
    if place.exists():
        raise FileExistsError(f"{place} is there already; move it away to get {facts.title} anew.")
    pyarrow_parquet()
    if facts.mirror.unofficial:
        log.warning("%s is an unofficial copy of %s", facts.mirror.repository, facts.title)
    remotes = listed(facts.mirror, endpoint)
    waiting = place.with_name(f".{facts.folder}.download")
    with bar(f"Downloading {facts.title} (bytes)") as progress:
        tables = _download_all(remotes, waiting, progress)
    draft = waiting / "tree"
    shutil.rmtree(draft, ignore_errors=True)
    published = dict(zip(*_by_digest(entry), strict=True)) if isinstance(entry, Manifested) else {}
    with bar(f"Unpacking {facts.title} (images)") as progress:
        count = extract(tables, draft, facts, published, progress)
    if count != facts.mirror.rows:
        raise ValueError(f"{facts.mirror.repository} holds {count} images; {facts.mirror.rows} were expected.")
    entry.load(draft)
    draft.replace(place)
    shutil.rmtree(waiting)
    return entry.load(place)


def listed(mirror: Mirror, endpoint: str | None = None) -> dict[str, Remote]:
    """The mirror's Parquet files by name, each with its size and sha256."""
    hub = huggingface_hub()
    try:
        found = hub.HfApi(endpoint=endpoint).dataset_info(
            mirror.repository, revision=mirror.revision, files_metadata=True
        )
    except (OSError, hub.errors.HfHubHTTPError) as failure:
        reason = str(failure).splitlines()[0]
        raise ConnectionError(f"{mirror.repository} cannot be reached on Hugging Face ({reason}).") from None
    remotes = {}
    for file in found.siblings:
        if fnmatch.fnmatch(file.rfilename, mirror.files):
            url = hub.hf_hub_url(
                mirror.repository, file.rfilename, repo_type="dataset", revision=found.sha, endpoint=endpoint
            )
            remotes[file.rfilename] = Remote(url, file.size, file.lfs.sha256 if file.lfs else None)
    if not remotes:
        raise ValueError(f"{mirror.repository} holds no {mirror.files} at {mirror.revision}; the mirror has changed.")
    return remotes


def _download_all(remotes: dict[str, Remote], folder: Path, progress: Progress) -> list[Path]:
    total = sum(remote.size or 0 for remote in remotes.values())
    tables, before = [], 0
    for name, remote in sorted(remotes.items()):

        def report(here: int, _: int, before: int = before) -> None:
            progress(before + here, max(total, before + here))

        tables.append(download(remote, folder / PurePosixPath(name).name, report))
        before += remote.size or 0
    return tables


def _by_digest(entry: Manifested) -> tuple[tuple[str, ...], tuple[str, ...]]:
    manifest = entry.manifest()
    return manifest.digests, manifest.files
