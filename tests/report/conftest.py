"""A store with a few runs at the smoke scale, whose models the report can look at."""

from collections.abc import Callable, Sequence

import pytest
from typer.testing import CliRunner

from styleshift.cli.main import app
from styleshift.experiments.recipe import recipe
from styleshift.experiments.record import Record
from styleshift.experiments.scales import scale
from styleshift.experiments.store import Store
from styleshift.experiments.table import Table, table_of
from styleshift.report import looking, style_map

MakeTable = Callable[..., Table]


@pytest.fixture(scope="session")
def smoke_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Mixstyle and mixstyle+sb, for sketch and cartoon; what a test adds to it others see, so none does."""
    folder = tmp_path_factory.mktemp("smoke")
    chosen = ("target=sketch", "target=cartoon", "method=mixstyle", "method=mixstyle+sb")
    only = [word for condition in chosen for word in ("--only", condition)]
    said = CliRunner().invoke(app, ["run", "pacs-original", "--scale", "smoke", *only, "--store", str(folder)])
    assert said.exit_code == 0, said.output
    return Store(folder)


@pytest.fixture
def without_tsne(monkeypatch: pytest.MonkeyPatch) -> None:
    """PCA alone, as where scikit-learn is not installed: t-SNE takes longer than all else."""
    for module in (looking, style_map):
        monkeypatch.setattr(module, "has_tsne", lambda: False)


@pytest.fixture
def smoke_table(smoke_store: Store) -> Table:
    """Table 1, of its runs."""
    return table_of(recipe("pacs-original"), scale("smoke"), smoke_store.records())


@pytest.fixture
def altered(smoke_store: Store) -> MakeTable:
    """Makes a table of its records with other numbers: `altered("pacs-alpha", change)`."""

    def make(name: str, change: Callable[[Record], Record] = lambda record: record) -> Table:
        records: Sequence[Record] = [change(record) for record in smoke_store.records()]
        return table_of(recipe(name), scale("smoke"), records)

    return make
