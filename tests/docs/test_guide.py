"""docs/guide: what it shows works, page by page, in the order in which it stands there.

python          is run after the blocks before it; `raises NAME`: it has to fail so; `traced`: in a process of its own
bash            every `styleshift` line is run in small (pages.IN_SMALL); `not run: REASON`: its options are parsed
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.pages import Block, blocks_of, parsed, run

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
MOST_LINES = 100


def named(page: Path) -> str:
    return page.stem


def executed(block: Block, page: Path, names: dict[str, object]) -> None:
    code = compile(block.text, page.name, "exec")
    if block.info.startswith("raises "):
        with pytest.raises(Exception) as failure:
            exec(code, names)
        assert failure.type.__name__ == block.info.removeprefix("raises ")
    else:
        exec(code, names)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "python")], ids=named)
def test_its_code_runs(page: Path, place: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks_of(page, "python"):
        if block.info != "traced":
            executed(block, page, names)


def test_traced_code_runs(plain_python: Callable[[str], str], place: Path) -> None:
    code = "\n".join(block.text for block in blocks_of(ROOT / "docs/guide/deploy.md", "python"))
    assert "torch.export" in code
    plain_python(f"import os; os.chdir({str(place)!r})\n{code}")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "bash")], ids=named)
def test_its_commands_run(page: Path, place: Path) -> None:
    for block in blocks_of(page, "bash"):
        for program, *words in block.commands:
            if program.startswith("./"):
                assert (ROOT / program).stat().st_mode & 0o111
            elif block.info.startswith("not run: "):
                parsed(words)
            else:
                assert (program, block.info) == ("styleshift", "")
                run(words)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_it_is_no_longer_than_two_screens(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link, anchor in re.findall(r"\]\(([\w./-]*\.md)?(#[\w-]+)?\)", text):
        target = (page.parent / link).resolve() if link else page
        assert target.is_file(), link
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.M)
        assert not anchor or anchor[1:] in {heading.lower().replace(" ", "-") for heading in headings}


def test_the_first_page_lists_all() -> None:
    first = (ROOT / "docs/guide/README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", first)) == {page.name for page in PAGES} - {"README.md"}


def test_a_command_with_an_option_that_is_not_there_is_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["train", "mine", "--to", "model", "--epoch-count", "3"])
    with pytest.raises(Exception, match="No such command"):
        parsed(["trian", "mine"])
