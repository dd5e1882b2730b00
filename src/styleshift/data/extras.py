"""Packages that only some of this needs, each with a clear line when it is missing."""

import importlib
from types import ModuleType


def pyarrow_parquet() -> ModuleType:
    """`pyarrow.parquet`, which reads and writes Parquet tables."""
    return _extra("pyarrow.parquet", "Parquet files")


def huggingface_hub() -> ModuleType:
    """`huggingface_hub`, which knows what a public dataset repository holds."""
    return _extra("huggingface_hub", "`styleshift data get`")


def _extra(module: str, purpose: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise ModuleNotFoundError(f"{purpose} needs {package}: pip install 'styleshift[data]'", name=package) from None
