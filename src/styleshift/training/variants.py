"""The names of what can be done at test time: `none`, `ts`, `ts:alpha=2,at=layer1`, `ts:all`, `ts:partial=0.8`, ...

`none` is the model as it is. `ts` is the paper's shift, at the recipe's layer and with its alpha. After a colon, joined
by commas: `alpha=NUMBER`, `at=LAYER`, and the words that `styleshift.style.shifting.Variant.named` knows.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from styleshift.style.shifting import Variant

_PAPERS = Variant()


@dataclass(frozen=True)
class ShiftRow:
    """One way to be tested: a row of a table.

    name: as it was written. at: the layer, or None for the model as it is. alpha: how many spreads count as far.
    places_itself: whether the name says `at` or `alpha`; if not, it is the shift of a fitted model where there is one.
    """

    name: str
    at: str | None
    alpha: float = 3.0
    variant: Variant = _PAPERS
    places_itself: bool = field(default=False, compare=False)  # the name, which is compared, says it already


def shift_row(name: str, at: str, alpha: float = 3.0) -> ShiftRow:
    """What `name` means in a recipe that shifts at layer `at` with `alpha`. ValueError if it means nothing."""
    if name == "none":
        return ShiftRow(name, at=None)
    word, _, settings = name.partition(":")
    if word != "ts" or name.endswith(":"):
        raise ValueError(f"a shift is none, ts, or ts:SETTINGS as in ts:alpha=2,at=layer1; got {name!r}")
    row = ShiftRow(name, at, alpha)
    for setting in settings.split(",") if settings else ():
        row = _with(row, setting.strip())
    return row


def _with(row: ShiftRow, setting: str) -> ShiftRow:
    key, _, value = setting.partition("=")
    if key == "at" and value:
        return replace(row, at=value, places_itself=True)
    if key == "alpha":
        return replace(row, alpha=_number(row.name, setting, value), places_itself=True)
    try:
        named = Variant.named(setting)
    except ValueError as error:
        reason = f"in the shift {row.name!r}: {setting!r} is neither alpha=NUMBER nor at=LAYER, and {error}"
        raise ValueError(reason) from None
    return replace(row, variant=_merged(row.variant, named))


def _number(name: str, setting: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"in the shift {name!r}: alpha is a number; got {setting!r}") from None


def _merged(variant: Variant, named: Variant) -> Variant:
    """`variant` with what `named` sets: `all` and `partial=0.5` together shift every sample half the way."""
    changed: dict[str, Any] = {
        field.name: getattr(named, field.name)
        for field in fields(Variant)
        if getattr(named, field.name) != field.default
    }
    return replace(variant, **changed)
