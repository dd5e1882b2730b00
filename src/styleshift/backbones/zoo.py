"""Networks of torchvision and timm (the `zoo` extra), with a head of our size and random weights.

build           "timm", "convnext_tiny" -> a module
imported        torchvision or timm, also beside a torch that their compiled operators were not built for
"""

import difflib
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

LIBRARIES = ("timm", "torchvision")
_log = logging.getLogger(__name__)

# What torchvision's compiled part would have declared; its Python part refuses to load without.
_OPERATORS = ("torchvision::nms", "torchvision::qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def build(library: str, name: str, classes: int) -> nn.Module:
    """The network `name` of `library` ("timm" or "torchvision") with a head for `classes`, at random."""
    if library not in LIBRARIES:
        raise KeyError(f"There is no library {library!r} of networks; those are {' and '.join(LIBRARIES)}.")
    package = imported(library)
    if library == "timm":
        _expect(name, library, package.list_models())
        model: nn.Module = package.create_model(name, pretrained=False, num_classes=classes)
    else:
        models = import_module("torchvision.models")
        _expect(name, library, models.list_models(models))
        model = models.get_model(name, weights=None, num_classes=classes)
    return model


def published(library: str, name: str) -> Path | None:
    """The file of ImageNet weights that `library` has for `name`, fetched into its own cache.

    None where it has none or cannot be reached; the log says which.
    """
    try:
        return _from_timm(name) if library == "timm" else _from_torchvision(name)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        _log.warning("no weights for %s from %s: %s", name, library, error)
        return None


def _from_timm(name: str) -> Path | None:
    source = imported("timm").get_pretrained_cfg(name)
    if source is None or not source.hf_hub_id:
        return None
    return Path(import_module("huggingface_hub").hf_hub_download(source.hf_hub_id, "model.safetensors"))


def _from_torchvision(name: str) -> Path | None:
    imported("torchvision")
    models = import_module("torchvision.models")
    if name not in models.list_models(models):
        return None
    weights = models.get_model_weights(name)["IMAGENET1K_V1"]
    weights.get_state_dict(progress=False, check_hash=True)
    file_name: str = weights.url.rpartition("/")[2]
    return Path(torch.hub.get_dir()) / "checkpoints" / file_name


def imported(library: str) -> ModuleType:
    """torchvision or timm; one line that says what to install where it is missing.

    Beside a torch of another build torchvision's compiled operators do not load. Models need none of them, so their
    schemas are declared here and nothing else is missed.
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{library} is not installed ({error}); `pip install 'styleshift[zoo]'` installs torchvision and timm."
        ) from error
    except RuntimeError as error:
        if _OPERATORS[0] not in str(error):
            raise
        _declare()
        return import_module(library)


def _declare() -> None:
    for operator in _OPERATORS:
        torch.library.define(operator, _SCHEMA)
    for name in [name for name in sys.modules if name.partition(".")[0] in LIBRARIES]:
        del sys.modules[name]  # what the failed import left half done


def _expect(name: str, library: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        raise KeyError(f"{library} has no network {name!r}{f'; did you mean one of {near}' if near else ''}.")
