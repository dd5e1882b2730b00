"""Attaching: style layers after the modules of any torch model, with nothing rewritten and nothing left behind.

    attach         a layer after each named module, until it is removed
    features_at    what named modules give, with the network run only as far as the deepest of them
    places         which modules a layer can take, in the order in which they run

The paper puts its layers between the residual blocks of a network (Sec. 4.3). Here that is a forward hook: the model's
parameters, state_dict, copies and pickles stay as they are.

Reading: "at layer2" means the output of the module called layer2.
"""

import difflib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from styleshift.adapting import Adapter, AskedLayout, Layout, NoFeatureMapError, Widths, adapter_of
from styleshift.style.shapes import Features
from styleshift.twins import Hook, expect_open, twin

Calls = Literal["every", "first"]
_NAMED_IN_ADVICE = 16


def attach(
    model: nn.Module,
    layers: Mapping[str, nn.Module],
    *,
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
    calls: Calls = "every",
) -> "Attachment":
    """Put each layer after the module of that name, from now until `remove()` or the end of a `with` block.

    layers: module name -> a layer that takes and gives `[B, C, H, W]`. Before every call a layer gets the mode
        (train or eval) of `model`; so one layer serves one model at a time.
    layout: "nchw", "nhwc" or "tokens" where the model's own layers do not tell ("auto" says so).
    prefix_tokens: tokens before the patches that no layer touches; None asks the model.
    calls: "first" styles only the first call of a module that runs several times within one call of `model`.

    Compile after attaching: by default torch.compile does not look whether hooks have come since. Where one process
    compiles both a plain model and a styled one, let it look, with `torch._dynamo.config.skip_nnmodule_hook_guards =
    False`. `calls="first"` counts outside the graph, so it cannot be compiled with `fullgraph=True`.
    """
    expect_open(model)
    if calls not in ("every", "first"):
        raise ValueError(f"calls needs to be 'every' or 'first'; got {calls!r}.")
    if not isinstance(layers, Mapping):
        raise TypeError(f"layers says which layer follows which module, as in {{'layer1': layer}}; got {layers!r}.")
    for name, layer in layers.items():
        if not isinstance(layer, nn.Module):
            raise TypeError(f"The layer for {name!r} needs to be an nn.Module; got {type(layer).__name__}.")
    adapters = _adapters(model, layers, layout, prefix_tokens)
    under_way = _UnderWay()
    handles = [model.register_forward_pre_hook(_Begin(under_way, calls), with_kwargs=True, prepend=True)]
    for name, layer in layers.items():
        _follow_mode(layer, model)
        styling = _Styling(model, name, layer, adapters[name], calls, under_way)
        handles.append(model.get_submodule(name).register_forward_hook(styling))
    handles.append(model.register_forward_hook(_End(under_way, calls), always_call=True))
    return Attachment(handles)


class Attachment:
    """Layers on a model's modules; made by `attach`, ended by `remove()` or by leaving its `with` block."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the layers off; the model is as it came. A second time does nothing."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def features_at(
    model: nn.Module,
    names: Iterable[str],
    images: Tensor,
    *,
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
) -> dict[str, Features]:
    """What the named modules give for `images`, as feature maps `[B, C, H, W]`.

    The network runs in its own mode and the caller's gradient mode, and stops as soon as every named module has run
    once; of a module that runs several times this is the first output. `layout` and `prefix_tokens` as for `attach`.
    """
    expect_open(model)
    adapters = _adapters(model, names, layout, prefix_tokens)
    features = _read(model, adapters, images)
    if missing := [name for name in adapters if name not in features]:
        raise ValueError(
            f"{', '.join(map(repr, missing))} did not run when {type(model).__name__} was called. "
            f"{_advice(model, (images,), {})}"
        )
    return {name: features[name] for name in adapters}


@dataclass(frozen=True)
class Place:
    """A module whose output a style layer can take.

    order: counts such modules in the order in which they finish, from 0.
    calls: how often it runs in one forward.
    last: what follows has no weights but those of norms and of the head; a shift here leaves nothing to recover.
    """

    name: str
    layout: Layout
    channels: int
    height: int
    width: int
    order: int
    calls: int
    last: bool


def places(
    model: nn.Module,
    images: Tensor,
    *,
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
) -> list[Place]:
    """The modules whose output a layer can take, in the order in which they finish on `images`.

    Modules that give a single place (after pooling) are left out, since a style needs a map, and those that give
    another number of samples than there are images (windows). The model itself does not run, but a twin of it in eval
    mode, so nothing in it changes.
    """
    expect_open(model)
    return _places(model, (images,), {}, layout, prefix_tokens)


@dataclass
class _Call:
    """One call of the model: its inputs, and the modules that have been styled in it."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    styled: set[str] = field(default_factory=set)


class _UnderWay:
    """The calls of the model that are under way, one a thread."""

    def __init__(self) -> None:
        # Not a threading.local: what compiled code writes there is lost without a word (torch 2.13).
        self._calls: dict[int, _Call] = {}

    def begin(self, call: _Call) -> None:
        self._calls[threading.get_ident()] = call

    def end(self) -> None:
        self._calls.pop(threading.get_ident(), None)

    def here(self) -> _Call | None:
        return self._calls.get(threading.get_ident())


@dataclass(eq=False)
class _Begin(Hook):
    under_way: _UnderWay
    calls: Calls

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if _counts(self.calls):
            self.under_way.begin(_Call(args, kwargs))


@dataclass(eq=False)
class _End(Hook):
    under_way: _UnderWay
    calls: Calls

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        if _counts(self.calls):
            self.under_way.end()


def _counts(calls: Calls) -> bool:
    # A thread's own number ends a compiled graph; where nothing is counted it only serves an error's advice.
    return calls == "first" or not torch.compiler.is_compiling()


@dataclass(eq=False)
class _Styling(Hook):
    """Passes what one module gives through one layer."""

    model: nn.Module
    name: str
    layer: nn.Module
    adapter: Adapter
    calls: Calls
    under_way: _UnderWay

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> object:
        if self.calls == "first" and self._is_repeated():
            return output
        try:
            features = self.adapter.features(output)
        except NoFeatureMapError as error:
            raise self._advised(error) from None
        _follow_mode(self.layer, self.model)
        styled = self.layer(features)
        if styled is features:
            return output
        self._expect_shape(styled, features)
        return self.adapter.put_back(output, styled)

    def _is_repeated(self) -> bool:
        call = self.under_way.here()
        if call is None:  # a part of the model was called by itself: there is nothing to count within
            return False
        repeated = self.name in call.styled
        call.styled.add(self.name)
        return repeated

    def _advised(self, error: NoFeatureMapError) -> NoFeatureMapError:
        call = self.under_way.here()
        return error if call is None else NoFeatureMapError(f"{error} {_advice(self.model, call.args, call.kwargs)}")

    def _expect_shape(self, styled: object, features: Features) -> None:
        if not isinstance(styled, Tensor) or styled.shape != features.shape:
            given = list(styled.shape) if isinstance(styled, Tensor) else type(styled).__name__
            raise ValueError(
                f"{type(self.layer).__name__} at {self.name!r} needs to give the shape that it takes, "
                f"{list(features.shape)}; it gave {given}."
            )


def _follow_mode(layer: nn.Module, model: nn.Module) -> None:
    # The layer itself comes last: another thread that sees its mode right sees the mode of all its parts right.
    if layer.training != model.training:
        for part in reversed(list(layer.modules())):
            part.training = model.training


class _Stop(Exception):  # noqa: N818 - not an error: every feature that was wanted is there
    """Ends a forward whose features have been read."""


def _read(model: nn.Module, adapters: Mapping[str, Adapter], images: Tensor) -> dict[str, Features]:
    features: dict[str, Features] = {}
    handles = [
        model.get_submodule(name).register_forward_hook(_Reading(adapter, features, len(adapters), len(images)))
        for name, adapter in adapters.items()
    ]
    try:
        model(images)
    except _Stop:
        pass
    except NoFeatureMapError as error:
        raise NoFeatureMapError(f"{error} {_advice(model, (images,), {})}") from None
    finally:
        for handle in handles:
            handle.remove()
    return features


@dataclass(eq=False)
class _Reading(Hook):
    """Notes what one module gives, and stops the forward of its own thread once nothing is missing."""

    adapter: Adapter
    features: dict[str, Features]
    wanted: int
    samples: int
    thread: int = field(default_factory=threading.get_ident)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        name = self.adapter.name
        if threading.get_ident() != self.thread or name in self.features:
            return
        features = self.adapter.features(output)
        if len(features) != self.samples:
            raise NoFeatureMapError(
                f"Module {name!r} gives {len(features)} samples for {self.samples} images, so none of them is an image."
            )
        if len(self.features) + 1 == self.wanted:
            self.features[name] = features
            raise _Stop
        # The network goes on, and may go on in place (an inplace ReLU after this module).
        self.features[name] = features.clone()


def _places(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
) -> list[Place]:
    double = twin(model).eval()
    finished: dict[str, list[Place]] = {}
    widths, samples = (
        Widths.of(double),
        [len(value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor)],
    )
    for name, module in double.named_modules():
        if name:
            adapter = adapter_of(double, name, layout, prefix_tokens, widths)
            module.register_forward_hook(_Noting(adapter, samples, finished))
    with torch.no_grad():
        double(*args, **kwargs)
    found = [replace(calls[0], order=order, calls=len(calls)) for order, calls in enumerate(finished.values())]
    mixing = [place for place in found if _mixes(double.get_submodule(place.name))]
    return [replace(place, last=not any(_is_after(other, place) for other in mixing)) for place in found]


@dataclass(eq=False)
class _Noting(Hook):
    """Notes where a layer can stand, whenever its module finishes."""

    adapter: Adapter
    samples: list[int]
    finished: dict[str, list[Place]]

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        try:
            features = self.adapter.features(output)
        except NoFeatureMapError:
            return
        count, channels, height, width = features.shape
        if height * width > 1 and count in self.samples:
            name, layout = self.adapter.name, self.adapter.layout_of(output)
            place = Place(name, layout, channels, height, width, order=0, calls=1, last=False)
            self.finished.setdefault(name, []).append(place)


def _mixes(module: nn.Module) -> bool:
    return any(parameter.ndim > 1 for parameter in module.parameters(recurse=False))


def _is_after(other: Place, place: Place) -> bool:
    return other.order > place.order and not place.name.startswith(f"{other.name}.")


def _advice(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """One sentence that names the layers worth choosing: blocks rather than their parts, outer blocks first."""
    found = [place.name for place in _places(model, args, kwargs)]
    blocks = [name for name in found if any(model.get_submodule(name).children())] or found
    if not blocks:
        return f"No module of {type(model).__name__} gives maps that a layer can take."
    outermost = sorted(blocks, key=lambda name: name.count("."))[:_NAMED_IN_ADVICE]
    more = f" and {len(found) - len(outermost)} inside them" if len(found) > len(outermost) else ""
    return f"Layers that can take it: {', '.join(name for name in blocks if name in outermost)}{more}."


def _adapters(
    model: nn.Module, names: Iterable[str], layout: AskedLayout, prefix_tokens: int | None
) -> dict[str, Adapter]:
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError("At least one module name is needed; got none.")
    for name in names:
        _expect_module(model, name)
    widths = Widths.of(model)
    return {name: adapter_of(model, name, layout, prefix_tokens, widths) for name in names}


def _expect_module(model: nn.Module, name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"A module is named by a string, as in 'layer2'; got {name!r}.")
    known = [known for known, _ in model.named_modules(remove_duplicate=False) if known]
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=3) or [known for known in known if "." not in known]
    raise KeyError(f"{type(model).__name__} has no module {name!r}; did you mean one of {near}?")
