"""`styleshift run`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

from styleshift.cli import run as module
from styleshift.experiments.store import Store

Command = Callable[..., Any]

SKETCH = ("--only", "target=sketch", "--only", "method=mixstyle")
SOURCE = Path(module.__file__).parents[2]


def started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The command line in a process of its own."""
    hidden = ("STYLESHIFT_DATA", "STYLESHIFT_STORE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.Popen(
        [sys.executable, "-c", "from styleshift.cli.main import main; main()", *arguments, "--store", str(folder)],
        env={**environment, "PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(folder / "cache")},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_a_record(folder: Path) -> None:
    ends = time.monotonic() + 120
    while not list((folder / "records").glob("*.json")):
        assert time.monotonic() < ends, "no run was finished in two minutes"
        time.sleep(0.05)


def test_it_finds_done_what_is_done(styleshift: Command, smoke: Path) -> None:
    said = styleshift("run", "pacs-original", "--scale", "smoke", *SKETCH, "--store", smoke)
    assert said.status == 0
    assert said.out == "pacs-original, scale smoke: 0 finished, 1 done before; 0 of 1 runs left to do\n"


def test_json_counts_the_runs(styleshift: Command, smoke: Path) -> None:
    said = styleshift("run", "pacs-alpha", "--scale", "smoke", *SKETCH, "--store", smoke, "--json")
    assert json.loads(said.out) == {
        "recipe": "pacs-alpha",
        "scale": "smoke",
        "runs": 1,
        "done": 1,
        "store": str(smoke),
    }


def test_a_dry_run_lists_and_runs_nothing(styleshift: Command, tmp_path: Path) -> None:
    said = styleshift("run", "pacs-alpha", "--dry-run", "--seeds", "0", "--only", "target=sketch")
    assert said.out.splitlines() == [
        "to do  mixstyle, target sketch, seed 0",
        "to do  mixstyle+sb, target sketch, seed 0",
        "2 of 2 runs to do, about 12:00 in one process",
    ]
    assert Store(tmp_path / "runs").records() == []


def test_a_dry_run_as_json(styleshift: Command, smoke: Path) -> None:
    asked = ("--scale", "smoke", "--only", "target=sketch", "--dry-run", "--json", "--store", smoke)
    said = styleshift("run", "pacs-alpha", *asked)
    assert [run["done"] for run in json.loads(said.out)["runs"]] == [True, False]


def test_a_dry_run_that_cannot_compare_images_says_so(
    styleshift: Command, smoke: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("run", "pacs-original", "--scale", "smoke", *SKETCH, "--dry-run", "--store", smoke)
    assert styleshift(*arguments).out.endswith("0 of 1 runs to do, about 0:00 in one process\n")
    monkeypatch.setattr("styleshift.experiments.runner.content_of", lambda *_: None)
    assert "in one process; more if the done ones are of other images or first weights" in styleshift(*arguments).out
    assert json.loads(styleshift(*arguments, "--json").out)["compared"] == "settings"


def test_without_a_scale_it_is_the_recipes_own(styleshift: Command) -> None:
    said = styleshift("run", "quickstart", "--dry-run", "--seeds", "0", "--only", "target=fog")
    assert said.out.splitlines()[-1] == "3 of 3 runs to do, about 0:18 in one process"


def test_records_from_a_folder_count_as_done(styleshift: Command, smoke: Path, tmp_path: Path) -> None:
    arguments = ("--scale", "smoke", *SKETCH, "--dry-run", "--store", tmp_path / "other")
    said = styleshift("run", "pacs-original", *arguments, "--import", smoke / "records")
    assert said.out.startswith("done   mixstyle, target sketch, seed 0\n0 of 1 runs to do")


def test_the_environment_names_the_store(styleshift: Command, smoke: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STYLESHIFT_STORE", str(smoke))
    assert "1 done before" in styleshift("run", "pacs-original", "--scale", "smoke", *SKETCH).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "0,x"), "--seeds takes whole numbers as in 0,1,2; got '0,x'"),
        (("--scale", "smoek"), "no scale 'smoek'; did you mean one of smoke?"),
        (("--only", "method=none"), "pacs-original has no run with method=none; there are art_painting"),
        (
            ("--only", "target=sketch", "--only", "target=typo"),
            "pacs-original has no run with target=typo; there are art_painting",
        ),
        (("--import", "nowhere"), "no folder nowhere to read records from"),
    ],
)
def test_mistakes_are_one_line(styleshift: Command, arguments: tuple[str, ...], message: str) -> None:
    said = styleshift("run", "pacs-original", *arguments)
    assert said.status == 2
    assert said.err.startswith(f"styleshift: {message}")
    assert said.err.count("\n") == 1


def test_an_unknown_key_in_a_recipe_is_one_line(styleshift: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('title = "x"\ndatset = "pacs"')
    said = styleshift("run", "mine.toml")
    assert said.status == 2
    assert said.err == "styleshift: mine.toml: no key 'datset'; did you mean one of dataset? (and 3 more)\n"


def test_an_empty_data_folder_is_one_line(styleshift: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    weights = tmp_path / "w.safetensors"
    save_file({}, weights)
    said = styleshift("run", "pacs-original", *SKETCH, "--data", "empty", "--weights", weights)
    assert said.status == 2
    assert "PACS" in said.err
    assert said.err.count("\n") == 1


def test_missing_weights_are_one_line(styleshift: Command, tmp_path: Path) -> None:
    said = styleshift("run", "pacs-original", *SKETCH, "--data", tmp_path)
    assert said.status == 2
    assert said.err.startswith("styleshift: no weights to start resnet18 from")


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(tmp_path: Path) -> None:
    # so many runs that it cannot be through when the signal comes
    arguments = ("run", "pacs-original", "--scale", "smoke", "--only", "method=baseline")
    process = started(tmp_path, *arguments, "--seeds", ",".join(map(str, range(100))))
    wait_for_a_record(tmp_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Nothing is lost: the same command goes on from there" in said
    done = len(Store(tmp_path).records())
    assert 1 <= done < 400
    assert Store(tmp_path).living_claims() == set()


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("3", "3")])
def test_several_processes_share_the_cores(given: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []

    class Worker:
        def __init__(self, command: list[str], *, env: dict[str, str], **_: object) -> None:
            began.append(env["OMP_NUM_THREADS"])

        def wait(self) -> int:
            return 0

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(module.subprocess, "Popen", Worker)
    module.in_processes(1000)
    assert set(began) == {expected}


# In place of the command line: says in a file that it is there, waits, and says why it ended.
_WAITING = """
import os, time
from pathlib import Path
def main():
    said = Path(os.environ["SAID"])
    (said / f"began {os.getpid()}").touch()
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        (said / f"stopped {os.getpid()}").touch()
"""


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers that only wait say what becomes of them."""
    package = tmp_path / "path" / "styleshift" / "cli"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "main.py").write_text(_WAITING)
    (tmp_path / "said").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    return tmp_path / "said"


def test_workers_of_a_background_job_stop_with_it(waiting: Path) -> None:
    over = threading.Event()

    def stop() -> None:
        while len(list(waiting.glob("began *"))) < 2 and not over.wait(0.02):
            pass
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts a background job
    try:
        threading.Thread(target=stop).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            module.in_processes(2)
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
    assert len(list(waiting.glob("stopped *"))) == 2
    assert time.monotonic() - began < 25


def test_workers_import_nothing_from_the_current_folder(
    waiting: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = Path(os.environ["PYTHONPATH"]) / "styleshift" / "cli" / "main.py"
    main.write_text("import evil\ndef main(): pass")
    (tmp_path / "evil.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="1 of 1 processes stopped early"):
        module.in_processes(1)


def test_two_processes_share_a_grid(tmp_path: Path) -> None:
    arguments = ("run", "pacs-alpha", "--scale", "smoke", "--seeds", "0,1", *SKETCH, "--jobs", "2")
    process = started(tmp_path, *arguments)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert out == "pacs-alpha, scale smoke: 2 processes have ended; 0 of 2 runs left to do\n"
    assert {record.seed for record in Store(tmp_path).records()} == {0, 1}
