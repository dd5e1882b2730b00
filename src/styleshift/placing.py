"""Where a shift may stand: the layers that `fit` was asked for, and the network in which they are looked for.

    body_and_places    a twin of the model, and the layers of it that can take a shift
    checked_names      the layers that shift, if they can, and in the order in which they run

What cannot be is said here, before any image is measured.
"""

import warnings
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from styleshift.adapting import AskedLayout
from styleshift.attaching import Calls, Place, features_at, places
from styleshift.calibrating import as_names
from styleshift.sources import onto_device_of
from styleshift.twins import twin


def body_and_places(
    model: nn.Module, images: Tensor, layout: AskedLayout, prefix_tokens: int | None
) -> tuple[nn.Module, Tensor, list[Place]]:
    """A twin of the model, one image where its weights are, and the layers that can take a shift."""
    body, one = twin(model).eval(), onto_device_of(model, images[:1])
    try:
        return body, one, places(body, one, layout=layout, prefix_tokens=prefix_tokens)
    except RuntimeError as error:
        raise ValueError(
            f"{type(model).__name__} does not run on the images of the first batch, {images.dtype} "
            f"{list(images.shape)}. Give them as the model takes them. It says: {error}"
        ) from error


def checked_names(
    model: nn.Module,
    images: Tensor,
    at: str | Sequence[str] | None,
    gate_at: str | None,
    layout: AskedLayout,
    prefix_tokens: int | None,
    calls: Calls,
) -> tuple[str, ...]:
    """The layers that shift, in order; warns of a place that is too deep, or runs more often than one might think."""
    body, one, found = body_and_places(model, images, layout, prefix_tokens)
    if at is None:
        raise ValueError(f"`at` names the layer after which styles are shifted. It can be {_listed(body, found)}.")
    names = as_names(at)
    gate = gate_at or names[0]
    with torch.no_grad():  # says so if it cannot
        features_at(body, list(dict.fromkeys([gate, *names])), one, layout=layout, prefix_tokens=prefix_tokens)
    named = {place.name: place for place in found}
    for name in names:
        _warn_of(name, named.get(name), calls)
    for first, second in pairwise([gate, *names]):
        if first != second:
            _expect_before(named.get(first), named.get(second), first, second)
    if set(names) != {gate}:
        _expect_one_decision(named[gate], calls)
    return names


def _warn_of(at: str, place: Place | None, calls: Calls) -> None:
    if place is None or place.last:
        warnings.warn(
            f"{at!r} is the deepest layer that can take a shift, or behind it: there features cluster by class, not by "
            "domain, and shifting destroys accuracy (to 20 % on PACS, in the paper). Take an earlier one.",
            stacklevel=4,
        )
    elif place.calls > 1 and calls == "every":
        warnings.warn(
            f"{at!r} runs {place.calls} times in one forward. Styles are measured at the first call and shifted at "
            "every one; calls='first' shifts the first alone.",
            stacklevel=4,
        )


def _listed(model: nn.Module, found: list[Place]) -> str:
    good = [place for place in found if not place.last]
    blocks = [place for place in good if any(model.get_submodule(place.name).children())] or good
    return ", ".join(f"{place.name} ({place.channels} channels)" for place in blocks)


def _expect_before(first: Place | None, second: Place | None, name: str, then: str) -> None:
    if first is None or (second is not None and first.order > second.order):
        raise ValueError(
            f"{name!r} needs to be a layer that runs before {then!r}, since the shift there does what was decided"
        )


def _expect_one_decision(gate: Place, calls: Calls) -> None:
    if gate.calls > 1 and calls == "every":
        raise ValueError(
            f"{gate.name!r} runs {gate.calls} times in one forward, so which of its decisions is meant? "
            "calls='first' takes the first."
        )
