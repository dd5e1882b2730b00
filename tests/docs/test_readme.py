"""README.md: what it shows works, in the order in which it stands there."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.docs.pages import blocks_of, run

from styleshift.backbones import zoo
from styleshift.experiments.recipe import recipe
from styleshift.experiments.record import records_in
from styleshift.experiments.scales import scale
from styleshift.experiments.table import table_of
from styleshift.experiments.table_formats import as_markdown

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
QUICKSTART = ROOT / "results" / "quickstart"
BLOCKS = re.findall(r"^```python(?: (zoo))?\n(.*?)^```", README, flags=re.M | re.S)


def test_every_block_runs_after_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for extra, code in BLOCKS:
        if not extra:
            exec(compile(code, "README.md", "exec"), names)
    assert (tmp_path / "styles.safetensors").stat().st_size > 0


@pytest.mark.zoo
@pytest.mark.skipif(not (find_spec("timm") and find_spec("torchvision")), reason="the zoo extra is not installed")
def test_the_blocks_on_other_libraries_models_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zoo.imported("timm")  # beside a torch that torchvision's compiled part was not built for, it has to come first
    names: dict[str, object] = {}
    for _, code in BLOCKS:
        exec(compile(code, "README.md", "exec"), names)
    assert names["robust"]


def test_its_commands_run(place: Path) -> None:
    (block,) = blocks_of(ROOT / "README.md", "bash")
    assert len(block.commands) == 4
    for program, *words in block.commands:
        assert program == "styleshift"
        run(words)


def test_the_headlines_figures_are_those_of_the_kept_result() -> None:
    (headline,) = re.findall(r"<!-- headline -->(.*)<!-- /headline -->", README, flags=re.S)
    kept = json.loads((ROOT / "results/core/pacs-sketch.json").read_text())
    mean, seeds = kept["percent, mean over seeds"], kept["percent, seed by seed"]
    shown = [float(number) for number in re.findall(r"([\d.]+) %", headline)]
    rows = ["layer2, alpha 3", "layer2, alpha 4", "layer4, alpha 3"]
    expected = [mean["plain"], *(mean[name] for row in rows for name in (f"{row}: shifted", row))]
    assert shown == [round(number, 1) for number in expected]
    gains = [round(seed["layer2, alpha 3"] - seed["plain"], 1) for seed in seeds]
    assert "gain {}, {} and {} points".format(*gains) in headline
    assert headline.replace("\n", " ").count(kept["command"].removesuffix(" --epochs 4")) == 1


@pytest.mark.skipif(not QUICKSTART.is_dir(), reason="no result of the quickstart is kept in results/quickstart")
def test_the_quickstarts_figures_are_those_of_the_kept_results() -> None:
    records = records_in(QUICKSTART / "records").values()
    assert as_markdown(table_of(recipe("quickstart"), scale("quickstart"), records)) in README
    measured = json.loads((QUICKSTART / "measured.json").read_text())
    assert f"installed in {measured['install_seconds']} s" in README
    assert f"in {measured['run_seconds']} s on {measured['cores']} cores" in README


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([\w./-]+)\)", README))))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^(\./scripts/\w+)", README, flags=re.M))))
def test_a_command_is_an_executable_script(command: str) -> None:
    assert (ROOT / command).stat().st_mode & 0o111
