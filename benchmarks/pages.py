"""The tables of committed records, between the marks of a page: python -m benchmarks.pages docs/reproduce.md

A mark is `<!-- table NAME -->` up to `<!-- end of table NAME -->`, with a recipe's name.
"""

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from styleshift.experiments.recipe import recipe
from styleshift.experiments.scales import scale_for
from styleshift.experiments.store import Store
from styleshift.experiments.table import table_of
from styleshift.experiments.table_formats import FORMATS

RESULTS = Path(__file__).parents[1] / "results"
MARKS = re.compile(r"<!-- table (\S+) -->\n.*?<!-- end of table \1 -->", flags=re.S)


def main(arguments: Sequence[str] | None = None) -> None:
    for path in map(Path, sys.argv[1:] if arguments is None else arguments):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str, results: Path = RESULTS) -> str:
    """The page with the tables as the records below `results` give them."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.take_in(results)
        return MARKS.sub(lambda mark: _between(mark[1], store), page)


def _between(name: str, store: Store) -> str:
    asked = recipe(name)
    text = FORMATS["markdown"](table_of(asked, scale_for(asked, None), store.records()))
    return f"<!-- table {name} -->\n{text.strip()}\n<!-- end of table {name} -->"


if __name__ == "__main__":
    main()
