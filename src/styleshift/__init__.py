"""styleshift: vision models that keep working on styles they have never seen.

Every public name is importable from here; what stands behind it is loaded when it is first used.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from styleshift.attaching import attach as attach
    from styleshift.backbones.building import backbone as backbone
    from styleshift.layers.correlated_style import CorrelatedStyle as CorrelatedStyle
    from styleshift.layers.crossnorm import CrossNorm as CrossNorm
    from styleshift.layers.dsu import DSU as DSU
    from styleshift.layers.efdmix import EFDMix as EFDMix
    from styleshift.layers.mixstyle import MixStyle as MixStyle
    from styleshift.layers.padain import PAdaIN as PAdaIN
    from styleshift.layers.style_balancing import StyleBalancing as StyleBalancing
    from styleshift.layers.style_shifting import StyleShifting as StyleShifting
    from styleshift.shifted import ShiftedModel as ShiftedModel
    from styleshift.shifted import fit as fit
    from styleshift.shifted import load as load
    from styleshift.sources import SourceStyles as SourceStyles
    from styleshift.sources import sources_of as sources_of
    from styleshift.style.balancing import planned_moves as planned_moves
    from styleshift.style.selection import least_missed as least_missed
    from styleshift.style.shifting import Variant as Variant
    from styleshift.style.shifting import far_score as far_score
    from styleshift.style.shifting import shift as shift
    from styleshift.style.statistics import Style as Style
    from styleshift.style.statistics import style_of as style_of
    from styleshift.style.transfer import adain as adain
    from styleshift.style.transfer import efdm as efdm
    from styleshift.stylizing import StyleTraining as StyleTraining

_HOME = {
    "CorrelatedStyle": "layers.correlated_style",
    "CrossNorm": "layers.crossnorm",
    "DSU": "layers.dsu",
    "EFDMix": "layers.efdmix",
    "MixStyle": "layers.mixstyle",
    "PAdaIN": "layers.padain",
    "ShiftedModel": "shifted",
    "SourceStyles": "sources",
    "Style": "style.statistics",
    "StyleBalancing": "layers.style_balancing",
    "StyleShifting": "layers.style_shifting",
    "StyleTraining": "stylizing",
    "Variant": "style.shifting",
    "adain": "style.transfer",
    "attach": "attaching",
    "backbone": "backbones.building",
    "efdm": "style.transfer",
    "far_score": "style.shifting",
    "fit": "shifted",
    "least_missed": "style.selection",
    "load": "shifted",
    "planned_moves": "style.balancing",
    "shift": "style.shifting",
    "sources_of": "sources",
    "style_of": "style.statistics",
}
__all__ = sorted([*_HOME, "__version__"])

try:
    __version__ = version("styleshift")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+source"


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"styleshift has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"styleshift.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
