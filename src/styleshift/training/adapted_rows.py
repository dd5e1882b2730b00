"""The names of all that can be done at test time: shifts as in variants.py, and the methods of `styleshift.adaptation`.

    tent    t3a:filter=1    bn_stats:share=1    conststyle:at=layer1,fraction=0.8    ts+tent    ts:alpha=2+t3a

After a method's colon are its settings; `at` is the layer of a method that sees the sources' styles. Several names in
one setting are parted by slashes: `sar:skip=layer3/layer4`. `ts...+METHOD` is that method around a model that shifts.

    row_of       what a name means
    layers_of    the layers that rows need source styles of
    wrapped      the model with a row's method around it
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_origin, get_type_hints

from torch import Tensor, nn

from styleshift import adaptation, named
from styleshift.adaptation.style_shift import StyleShift
from styleshift.adaptation.wrapping import Adapted, Method, Sees, body_of
from styleshift.shifted import ShiftedModel
from styleshift.sources import SourceStyles
from styleshift.training.variants import ShiftRow, shift_row
from styleshift.twins import twin

# `style_shift` is `ts` here
WORDS = tuple(name for name in named.names(adaptation) if name != "style_shift")
# without MEMO: 64 views of every image, forward and backward, are for who asks for it by name
QUICK = ("none", "ts", "conststyle", "bn_stats", "t3a", "tent", "eata", "sar", "ts+t3a", "ts+tent")


@dataclass(frozen=True)
class AdaptedRow:
    """A method of `styleshift.adaptation` as a row of a table.

    name: complete, whatever the recipe. method: its file's name. build: the method with its settings.
    at: the layer whose source styles it sees, if any. shift: what it stands around; None: the model as it is.
    """

    name: str
    method: str
    build: Method
    at: str | None
    shift: ShiftRow | None

    @property
    def layer(self) -> str | None:
        """The one layer that source styles are needed of, if any."""
        return self.at or (self.shift.at if self.shift else None)


Row = ShiftRow | AdaptedRow


def row_of(name: str, at: str, alpha: float = 3.0) -> Row:
    """What `name` means where shifts are at the layer `at` with `alpha`. ValueError, with what there is, if nothing."""
    shift, plus, last = name.rpartition("+")
    word, _, settings = last.partition(":")
    if word not in WORDS:
        if plus or word not in ("none", "ts"):
            near = difflib.get_close_matches(word, WORDS) or WORDS
            raise ValueError(
                f"nothing at test time is called {name!r}: it is none, ts, {', '.join(near)}, or ts+METHOD"
            )
        return shift_row(name, at, alpha)
    given = _settings(name, settings)
    kind: Any = named.find(adaptation, word)
    layer = str(given.pop("at", at)) if kind.sees.source_styles else None
    method = _built(name, word, given)
    around = shift_row(shift, at, alpha) if plus else None
    if around is not None and (around.at is None or layer is not None):
        raise ValueError(f"{name!r}: a method around a shift is written ts+METHOD, and {word} {_why_not(layer)}")
    return AdaptedRow(_complete(word, method, layer, around), word, method, layer, around)


def layers_of(rows: Iterable[Row]) -> list[str]:
    """The layers that source styles are needed of, each once."""
    needed = (row.at if isinstance(row, ShiftRow) else row.layer for row in rows)
    return list(dict.fromkeys(layer for layer in needed if layer is not None))


def wrapped(
    row: Row,
    model: nn.Module,
    styles: Mapping[str, SourceStyles],
    *,
    images: Iterable[Tensor] | None = None,
    seed: int = 0,
    fitted: ShiftedModel | None = None,
) -> Adapted:
    """`model` with what a row asks for around it, `none` included.

    styles: by layer. images: batches of source images, for methods that look at some.
    fitted: what a bare `ts` stands for; a row that names a variant, but neither `at` nor `alpha`, has its layer,
        threshold and gate.
    """
    if isinstance(row, ShiftRow):
        return Adapted(_shifted(row, model, styles, seed, fitted), _SEES_STYLES if row.at else Sees())
    body = model if row.shift is None else _shifted(row.shift, model, styles, seed, fitted)
    found = row.build.wrap(body, styles=_styles_at(row.at, row.name, styles) if row.at else None, images=images)
    if row.shift is not None:
        found.sees = _both(found.sees, _SEES_STYLES)
    return found


_SEES_STYLES = StyleShift.sees


def _shifted(
    row: ShiftRow, model: nn.Module, styles: Mapping[str, SourceStyles], seed: int, fitted: ShiftedModel | None
) -> nn.Module:
    if row.at is None:
        return body_of(model)
    if fitted is not None and not row.places_itself:
        return twin(fitted) if row.name == "ts" else _as_fitted(fitted, model, row, seed)
    return ShiftedModel(model, _styles_at(row.at, row.name, styles), row.alpha, row.variant, seed=seed)


def _as_fitted(fitted: ShiftedModel, model: nn.Module, row: ShiftRow, seed: int) -> ShiftedModel:
    """`model` shifted where and by whose decision `fitted` is, in another way."""
    gate = None if row.variant.everything else fitted.gate
    own = fitted.shifting.variant.fraction
    kind = row.variant if "partial" in row.name else replace(row.variant, fraction=own)
    return ShiftedModel(
        model, fitted.sources, fitted.alpha, kind, fitted.attaching, seed, fitted.origin, gate, then=fitted.then
    )


def _styles_at(layer: str, name: str, styles: Mapping[str, SourceStyles]) -> SourceStyles:
    if layer not in styles:
        raise KeyError(f"{name!r} shifts at {layer}, but there are source styles for {list(styles) or 'nothing'} only")
    return styles[layer]


def _both(one: Sees, other: Sees) -> Sees:
    return Sees(**{field.name: getattr(one, field.name) or getattr(other, field.name) for field in fields(Sees)})


def _settings(name: str, text: str) -> dict[str, Any]:
    pairs = [setting.strip().partition("=") for setting in text.split(",")] if text else []
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise ValueError(f"in {name!r}: a setting is NAME=VALUE, joined by commas; got {key + equals + value!r}")
    return {key: value for key, _, value in pairs}


def _built(name: str, word: str, given: Mapping[str, str]) -> Method:
    hints = get_type_hints(named.find(adaptation, word))
    settings = {key: _value(name, key, hints[key], text) if key in hints else text for key, text in given.items()}
    try:
        method = named.build(adaptation, word, **settings)
    except ValueError as error:
        raise ValueError(f"in {name!r}: {error}") from None
    assert isinstance(method, Method)
    return method


def _value(name: str, key: str, hint: Any, text: str) -> Any:
    """A setting's text as the first of its types that it can be."""
    if get_origin(hint) is tuple:
        return tuple(text.split("/"))
    kinds = [kind for kind in (*get_args(hint), hint) if kind in (int, float)]
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    if kinds and not any(text in get_args(part) for part in get_args(hint)):
        raise ValueError(f"in {name!r}: {key} is a number; got {text!r}")
    return text


def _complete(word: str, method: Method, layer: str | None, shift: ShiftRow | None) -> str:
    """The name with every setting that is not its default, so that a record can be read without its recipe."""
    changed = [
        f"{field.name}={_text(getattr(method, field.name))}"
        for field in fields(method)  # type: ignore[arg-type]  # every method is a dataclass; a protocol cannot say so
        if getattr(method, field.name) != field.default
    ]
    settings = [*([f"at={layer}"] if layer else []), *changed]
    own = f"{word}:{','.join(settings)}" if settings else word
    if shift is None:
        return own
    return f"ts:at={shift.at},{_words(shift)}+{own}"


def _text(value: Any) -> str:
    """A setting as `_value` reads it."""
    return "/".join(value) if isinstance(value, tuple) else str(value)


def _words(shift: ShiftRow) -> str:
    variant = shift.variant
    words = [f"alpha={shift.alpha:g}", *(["all"] if variant.everything else [])]
    if variant.to != "nearest":
        words.append(f"{variant.to}={variant.samples if variant.to == 'sampled' else variant.temperature:g}")
    return ",".join([*words, *([f"partial={variant.fraction:g}"] if variant.fraction != 1 else [])])


def _why_not(layer: str | None) -> str:
    return "shifts by itself" if layer is not None else "stands around ts"
