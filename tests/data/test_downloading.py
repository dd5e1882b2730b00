"""Downloading one file, from a server on the loopback."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from styleshift.data.downloading import Remote, download

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def remote(server: Any) -> Remote:
    server.files["/file"] = CONTENT
    return Remote(f"{server.url}/file", len(CONTENT), SHA256)


def part_of(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def test_it_gets_a_file(remote: Remote, tmp_path: Path) -> None:
    assert download(remote, tmp_path / "new" / "file").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_it_goes_on_where_a_connection_broke(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.breaks = [1000, 500]
    assert download(remote, tmp_path / "file", pause=0.0).read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [None, "bytes=1000-", "bytes=1500-"]


def test_it_goes_on_where_another_process_was_killed(server: Any, remote: Remote, tmp_path: Path) -> None:
    part_of(tmp_path / "file").write_bytes(CONTENT[:700])
    assert download(remote, tmp_path / "file").read_bytes() == CONTENT
    assert server.asked == [("/file", "bytes=700-")]


def test_it_begins_again_where_the_server_cannot_resume(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.resumes, server.breaks = False, [1000]
    assert download(remote, tmp_path / "file", pause=0.0).read_bytes() == CONTENT


def test_it_begins_again_when_it_has_more_than_there_is(server: Any, tmp_path: Path) -> None:
    server.files["/file"] = CONTENT
    part_of(tmp_path / "file").write_bytes(CONTENT + b"more")
    assert download(Remote(f"{server.url}/file", None, SHA256), tmp_path / "file", pause=0.0).read_bytes() == CONTENT


def test_what_is_whole_is_not_asked_for_again(server: Any, remote: Remote, tmp_path: Path) -> None:
    part_of(tmp_path / "file").write_bytes(CONTENT)
    download(remote, tmp_path / "file")
    download(remote, tmp_path / "file")
    assert server.asked == []


def test_a_file_that_is_not_the_one_announced_is_got_anew(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    assert download(remote, tmp_path / "file").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_is_left(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.files["/file"] = CONTENT[:-1] + b"?"
    with pytest.raises(ValueError, match=rf"instead of {SHA256[:12]}\.\.\.; what came is thrown away"):
        download(remote, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_size_is_refused(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.files["/file"] = CONTENT[:-1]
    with pytest.raises(ValueError, match=f"has {len(CONTENT) - 1} bytes instead of {len(CONTENT)}"):
        download(remote, tmp_path / "file")


def test_a_passing_refusal_is_tried_again(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.refusals = [503, 429, 500]
    assert download(remote, tmp_path / "file", pause=0.0).read_bytes() == CONTENT


def test_a_final_refusal_is_not(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.refusals = [403] * 5
    with pytest.raises(ConnectionError, match=r"cannot be downloaded \(HTTP Error 403"):
        download(remote, tmp_path / "file", pause=0.0)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("refused", "passes"), [(2, True), (3, False)])
def test_it_gives_up_after_so_many_attempts(
    server: Any, remote: Remote, tmp_path: Path, refused: int, passes: bool
) -> None:
    server.refusals = [503] * refused
    if passes:
        download(remote, tmp_path / "file", attempts=3, pause=0.0)
    else:
        with pytest.raises(ConnectionError, match="run again to go on"):
            download(remote, tmp_path / "file", attempts=3, pause=0.0)


def test_what_came_before_it_gave_up_is_kept(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.breaks = [1000]
    with pytest.raises(ConnectionError):
        download(remote, tmp_path / "file", attempts=1, pause=0.0)
    assert part_of(tmp_path / "file").read_bytes() == CONTENT[:1000]
    assert not (tmp_path / "file").exists()


def test_an_attempt_that_gets_further_starts_the_count_again(server: Any, remote: Remote, tmp_path: Path) -> None:
    server.breaks = [100] * 10
    assert download(remote, tmp_path / "file", attempts=2, pause=0.0).read_bytes() == CONTENT


def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="cannot be downloaded") as refusal:
        download(Remote("http://127.0.0.1:9/file"), tmp_path / "file", attempts=1)
    assert "\n" not in str(refusal.value)


def test_it_reports_bytes_also_of_what_it_had(remote: Remote, tmp_path: Path) -> None:
    part_of(tmp_path / "file").write_bytes(CONTENT[:700])
    reports: list[tuple[int, int]] = []
    download(remote, tmp_path / "file", lambda done, total: reports.append((done, total)))
    assert reports == [(len(CONTENT), len(CONTENT))]
