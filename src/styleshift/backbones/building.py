"""Building a network by its name, and filling it from a file of weights.

backbone      a family's file name and a variant ("resnet18"), or one of another library ("timm:convnext_tiny")
fill          load a file of weights into a model, whatever the size of its head
weights_for   which file that is, where none was given
"""

import difflib
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from styleshift import backbones, named
from styleshift.backbones import zoo

_SHOWN = 3
_log = logging.getLogger(__name__)


def backbone(name: str, classes: int = 7, weights: str | Path | None = None) -> nn.Module:
    """A network for images `[B, 3, H, W]` with logits `[B, classes]`.

    name: one of our own ("resnet18", "resnet50", ...), or "timm:NAME" or "torchvision:NAME" with the `zoo` extra.
    classes: how many classes the head tells apart.
    weights: a .safetensors or .pth file with this network's keys. A head of another size is left at its
        initialisation and named in the log. None leaves everything there.
    """
    model = network(name, classes)
    if weights is None:
        _log.warning("%s: no weights given, so it starts at random", name)
    else:
        fill(model, Path(weights), name)
    return model


def network(name: str, classes: int) -> nn.Module:
    """The network that `backbone` would build, at random and without a word: for who loads a whole state_dict next."""
    if classes < 1:
        raise ValueError(f"A head needs at least one class; got classes={classes}.")
    library, colon, model_name = name.partition(":")
    return zoo.build(library, model_name, classes) if colon else _own(name, classes)


def fill(model: nn.Module, file: Path, name: str) -> None:
    """Load `file` into `model`, which is a `name`; a head of another size is left as it is, and logged.

    The batch counts of norm layers (`num_batches_tracked`) may be absent.
    """
    held, wanted = tensors_in(file), model.state_dict()
    head = _head_of(model)
    missing = [key for key in wanted if key not in held and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in held if key not in wanted]
    misfits = [key for key in wanted if key in held and held[key].shape != wanted[key].shape]
    left = [key for key in [*missing, *misfits] if key.rpartition(".")[0] == head]
    wrong = {
        "missing": [key for key in missing if key not in left],
        "unexpected": unexpected,
        "shape": [f"{key} {list(held[key].shape)}" for key in misfits if key not in left],
    }
    if any(wrong.values()):
        found = "; ".join(_counted(what, keys) for what, keys in wrong.items() if keys)
        raise ValueError(f"{file} is not a {name}: {found}. Name the network that the file was made for.")
    model.load_state_dict({key: held[key] for key in held if key not in left}, strict=False)
    _log.info("%s: weights from %s", name, file)
    if left:
        _log.warning("%s: the head (%s) does not fit the one in %s and starts at random", name, ", ".join(left), file)


def weights_for(
    name: str, given: str | Path | None = None, folder: Path | None = None, download: bool = False
) -> Path | None:
    """The file of published weights for the network `name`; None where there is none.

    given: this file, whatever else there is.
    folder: where a file lies that is called `name` or `name_...`; None means `$STYLESHIFT_DATA/weights`.
    download: whether torchvision or timm may fetch theirs where nothing else is found.
    """
    if given is not None:
        return Path(given)
    if folder is None and (data := os.environ.get("STYLESHIFT_DATA")):
        folder = Path(data) / "weights"
    stem = name.replace(":", "_")
    files = sorted(folder.glob(f"{stem}*")) if folder else []
    for file in files:
        if file.suffix in _READERS and (file.stem == stem or file.stem.startswith(f"{stem}_")):
            return file
    library, colon, model_name = name.rpartition(":")
    return zoo.published(library if colon else "torchvision", model_name) if download else None


def _own(name: str, classes: int) -> nn.Module:
    built: dict[str, tuple[str, str]] = {
        f"{family}{variant}": (family, variant)
        for family in named.names(backbones)
        for variant in getattr(named.find(backbones, family), "variants", ("",))
    }
    if name not in built:
        near = difflib.get_close_matches(name, built, n=3) or sorted(built)
        raise KeyError(f"There is no backbone {name!r}; did you mean one of {near}, or 'timm:{name}'?")
    family, variant = built[name]
    settings = {"variant": variant} if variant else {}
    model: nn.Module = named.build(backbones, family, classes=classes, **settings)
    return model


def _head_of(model: nn.Module) -> str | None:
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return linear[-1] if linear else None


def tensors_in(file: Path) -> dict[str, Tensor]:
    """What a file of weights holds. ValueError or FileNotFoundError, in a sentence, where it is none."""
    if file.suffix not in _READERS:
        raise ValueError(f"Weights come as {' or '.join(_READERS)}; got {file}.")
    if not file.is_file():
        raise FileNotFoundError(f"There is no weights file {file}.")
    try:
        held = _READERS[file.suffix](file)
    except (SafetensorError, UnpicklingError, RuntimeError, EOFError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{file} cannot be read as weights: {reason}") from error
    for nested in ("state_dict", "model"):
        held = held.get(nested, held) if isinstance(held, Mapping) else held
    if not isinstance(held, Mapping) or not all(isinstance(tensor, Tensor) for tensor in held.values()):
        raise ValueError(f"{file} holds no state_dict, that is, no tensors by their names.")
    return dict(held)


def _read_pickle(file: Path) -> Any:
    return torch.load(file, map_location="cpu", weights_only=True)


_READERS: Mapping[str, Callable[[Path], Any]] = {".safetensors": load_file, ".pth": _read_pickle, ".pt": _read_pickle}


def _counted(what: str, keys: list[str]) -> str:
    return f"{what} {len(keys)} ({', '.join(keys[:_SHOWN])}{', …' if len(keys) > _SHOWN else ''})"
