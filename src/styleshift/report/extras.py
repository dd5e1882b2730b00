"""What the report needs beyond the core, each with a clear line when it is missing."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

INSTALL = "pip install 'styleshift[report]'"
NO_TSNE = f"t-SNE needs scikit-learn: {INSTALL}"


def jinja2() -> ModuleType:
    """`jinja2`, which fills the page's template. ModuleNotFoundError, with what to install, where it is missing."""
    try:
        return import_module("jinja2")
    except ImportError:
        raise ModuleNotFoundError(f"an HTML page needs jinja2: {INSTALL}", name="jinja2") from None


def has_tsne() -> bool:
    """Whether scikit-learn is there, which knows t-SNE."""
    return find_spec("sklearn") is not None
