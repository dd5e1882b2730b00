"""Twins: a second body over the same weights, with its own hooks and its own train or eval mode.

    twin           a copy of a model's structure that shares its parameters and buffers
    reachable      all that a copy of a model comes by
    expect_open    whether Python can see into a model at all
    Hook           a forward hook that stays with the model it was put on: in copies and pickles it does nothing

Test-time style shifting changes what a model does, not what it has learned (paper Sec. 4.2). A twin can carry the
shift while the user's model stays plain: what is trained, loaded or moved in one is seen by the other.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import MethodType
from typing import TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


def twin(model: Model) -> Model:
    """A model of the same structure whose modules hold the very same parameters and buffers.

    Shared: parameters, buffers and every other tensor, also after `.to(...)`, `load_state_dict` or an optimiser's step
    on either of the two. Own: hooks, train or eval mode and every other attribute. So a submodule that is put in the
    place of another later is seen by one of the two only.
    """
    expect_open(model)
    shared: dict[int, object] = {}
    for thing in reachable(model):
        if isinstance(thing, Tensor):
            shared[id(thing)] = thing
        elif isinstance(thing, nn.Module):
            # The dicts themselves, not their entries: `.to` and parametrisations replace entries.
            shared[id(thing._parameters)] = thing._parameters
            shared[id(thing._buffers)] = thing._buffers
    try:
        double = copy.deepcopy(model, shared)
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"A {type(model).__name__} has to be copied, all but its weights, and cannot be: {error}. "
            "Take what cannot be copied out of its attributes."
        ) from error
    for module in double.modules():
        _drop_inert(module)
    return double


def expect_open(model: object) -> None:
    """Say what is needed if `model` is no module whose submodules Python runs one by one."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"A model needs to be an nn.Module; got {type(model).__name__}.")
    for name, module in model.named_modules():
        if reason := _closed(module):
            where = f"the module {name!r} of this {type(model).__name__}" if name else f"this {type(model).__name__}"
            raise TypeError(f"No layer can follow {where}: {reason}.")


def _closed(module: nn.Module) -> str | None:
    if isinstance(module, torch.jit.ScriptModule):
        return "it is scripted and runs past every hook; give the Python model"
    if isinstance(module, nn.DataParallel):
        return "nn.DataParallel runs copies of its module; give the module itself (.module)"
    if "_orig_mod" in module._modules:
        return "it is compiled and does not notice new hooks; give the model itself, and compile afterwards"
    return None


class Hook:
    """A hook that copies and pickles of its module carry as `Inert`."""

    def __reduce__(self) -> tuple[type["Inert"], tuple[()]]:
        return Inert, ()


class Inert:
    """What a copied or unpickled model has where the original has a hook of ours: nothing happens."""

    def __call__(self, *seen: object) -> None:
        return None


def reachable(model: nn.Module) -> Iterator[object]:
    """All that a deep copy of `model` comes by: also modules in plain lists, behind bound methods and in objects."""
    waiting: list[object] = [model]
    met: dict[int, object] = {}
    while waiting:
        thing = waiting.pop()
        if id(thing) not in met:
            met[id(thing)] = thing
            yield thing
            waiting.extend(_held_by(thing))


def _held_by(thing: object) -> Iterable[object]:
    if isinstance(thing, Tensor | Hook | type):
        return ()
    if isinstance(thing, Mapping):
        return thing.values()
    if isinstance(thing, list | tuple | set | frozenset):
        return thing
    if isinstance(thing, MethodType):
        return (thing.__self__,)
    if isinstance(thing, partial):
        return (thing.func, thing.args, thing.keywords)
    return getattr(thing, "__dict__", {}).values()


def _drop_inert(module: nn.Module) -> None:
    registers = {name: register for name, register in vars(module).items() if name.startswith("_forward_")}
    inert = {key for register in registers.values() for key, hook in register.items() if isinstance(hook, Inert)}
    for register in registers.values():
        for key in inert & register.keys():
            del register[key]
