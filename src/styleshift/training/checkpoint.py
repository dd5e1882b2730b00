"""Checkpoints: everything of a training at one moment, in one file that is either whole or not there.

A tree of dictionaries and lists whose leaves are tensors or plain JSON values. Tensors go into the safetensors body,
the rest as JSON into its header: no pickle, and a file from a stranger cannot run code.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from styleshift.writing import atomically

Tree = dict[str, Any]

_HEADER = "styleshift"  # the header's entry that holds the JSON part
_TENSOR = "tensor at"  # stands in the JSON part where a tensor was


def write_checkpoint(path: Path, tree: Tree) -> None:
    """Writes `tree` to `path`, which at every moment holds either the old content or the new one, whole.

    OSError, with what to do, when it cannot be written (a full disk); the old content is then still there.
    """
    tensors: dict[str, Tensor] = {}
    plain = _without_tensors(tree, "", tensors)
    # allow_nan: what is not a number would be written as something that is not JSON
    content = save(tensors, metadata={_HEADER: json.dumps(plain, allow_nan=False)})
    try:
        with atomically(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        kept = "the one before it is whole and will be used" if path.exists() else "there was none before it"
        reason = f"cannot write the {len(content):,} bytes of {path}: {error.strerror}; {kept}. Make room and run again"
        raise OSError(error.errno, reason) from error


def read_checkpoint(path: Path) -> Tree:
    """The tree in `path`. ValueError if the file is not one of ours or is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(_HEADER)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  safe_open is no mapping
    except SafetensorError as error:
        raise ValueError(_not_whole(path, error)) from error
    if header is None:
        raise ValueError(f"{path} was not written by a training of ours: it lacks the {_HEADER!r} entry in its header")
    tree = _with_tensors(json.loads(header), tensors)
    assert isinstance(tree, dict)
    return tree


def header_of(path: Path) -> Tree:
    """The plain part of the tree in `path`, without reading the tensors. ValueError if the file is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            plain = json.loads((file.metadata() or {}).get(_HEADER, "{}"))
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(_not_whole(path, error)) from error
    assert isinstance(plain, dict)
    return plain


def _not_whole(path: Path, error: Exception) -> str:
    return f"{path} is not a whole safetensors file ({error}); remove it to begin again"


def _without_tensors(tree: Any, at: str, found: dict[str, Tensor]) -> Any:
    if isinstance(tree, Tensor):
        # a copy: safetensors takes neither strides nor storage shared between two names
        found[at] = tree.detach().cpu().contiguous().clone()
        return {_TENSOR: at}
    if isinstance(tree, Mapping):
        return {name: _without_tensors(below, f"{at}/{name}" if at else name, found) for name, below in tree.items()}
    if isinstance(tree, list | tuple):
        return [_without_tensors(below, f"{at}/{place}", found) for place, below in enumerate(tree)]
    return tree


def _with_tensors(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(plain, dict):
        if plain.keys() == {_TENSOR}:
            return tensors[plain[_TENSOR]]
        return {name: _with_tensors(below, tensors) for name, below in plain.items()}
    if isinstance(plain, list):
        return [_with_tensors(below, tensors) for below in plain]
    return plain
