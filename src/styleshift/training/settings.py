"""Everything that a training's result depends on, in one frozen record; and the names of what is trained.

A method names what is trained: `baseline`, `mixstyle`, `efdmix`, `dsu`, each also with `+sb` (style balancing). Which
shift acts at test time is not a setting of a training: one training serves them all.
"""

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from styleshift.training.sampling import Sampling

Augment = Literal["mixstyle", "efdmix", "dsu"]
Schedule = Literal["cosine-step", "cosine-epoch"]
Precision = Literal["float32", "bfloat16"]
Selection = Literal["least_missed", "random"]
Choice = Literal["last", "best-validation"]


class Method(NamedTuple):
    """What a method's name stands for."""

    augment: Augment | None
    balance: bool


_AUGMENTS: Mapping[str, Augment | None] = {"baseline": None, "mixstyle": "mixstyle", "efdmix": "efdmix", "dsu": "dsu"}

METHODS: Mapping[str, Method] = {
    f"{name}{suffix}": Method(augment, balance)
    for name, augment in _AUGMENTS.items()
    for suffix, balance in (("", False), ("+sb", True))
}


def method_of(name: str) -> Method:
    """The method called `name`. KeyError with near names if there is none."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, cutoff=0.5)
        raise KeyError(f"no method {name!r}; did you mean one of {near or list(METHODS)}?")
    return METHODS[name]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A training, but for its data. Two trainings with equal settings and data end in equal weights (same machine).

    backbone: a name that `styleshift.backbone` knows. The paper: resnet18.
    weights: sha256 of the safetensors file that the backbone starts from, or None for random ones.
    algorithm: a file of `styleshift.algorithms`.
    augment, balance: the style augmentation and whether style balancing (SB) acts before it; see `method_of`.
    p: the coin of each point, in [0, 1]. The paper: 0.5.
    points: modules after which augmentation and SB act, or None for those that the method was published with.
    selection: which samples SB moves: `least_missed` (the paper's Algorithm 1) or `random` (its ablation).
    sb_share: share of batches in which SB may act at all, in [0, 1]. The paper: 1.
    pseudo_domains: SB takes this many k-means clusters of style for the domains, found anew every epoch; None: the
        labels'. The paper, without domain labels: 3.
    shift_at: the layer whose styles are clustered for it, or None for the backbone's own layer for TS.
    transform: the name of one of `styleshift.data.transforms`. The paper: tsb.
    cache_size, image_size: sides of images before and after it, or None for the transform's own.
    epochs, batch_size, learning_rate, momentum, nesterov, weight_decay: of SGD. The paper: 150, 128, 1e-3, 0.9, False,
        5e-4.
    clip: a gradient longer than this is shortened to it; None: never, as in the paper. SB before MixStyle has a few
        that are 10 to 30 times as long as most; probably since Eq. 6 gives the content a gradient of 1, and MixStyle
        then divides it by the lent deviation, which is almost 0 where a channel of the lender is dead.
    schedule: the learning rate falls to 0 along a cosine, by `cosine-step` or, as in the paper, `cosine-epoch`.
    precision: `float32` (the reference) or `bfloat16` autocast; weights and style statistics are float32 in both.
    channels_last: the memory format of images and weights.
    sampling: `random`, or the classes levelled by `oversample` or `undersample`.
    reweight: class weights in the loss by the effective number of samples, or None.
    choose: the model that is kept: of the `last` epoch (the paper), or `best-validation`, by the sources' validation
        images.
    seed: of everything that is drawn.
    threads: of torch; sums in another order differ in their last bits.
    """

    backbone: str = "resnet18"
    weights: str | None = None
    algorithm: str = "erm"
    augment: Augment | None = None
    balance: bool = False
    p: float = 0.5
    points: tuple[str, ...] | None = None
    selection: Selection = "least_missed"
    sb_share: float = 1.0
    pseudo_domains: int | None = None
    shift_at: str | None = None
    transform: str = "light"
    cache_size: int | None = None
    image_size: int | None = None
    epochs: int = 5
    batch_size: int = 128
    learning_rate: float = 0.01
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    clip: float | None = None
    schedule: Schedule = "cosine-step"
    precision: Precision = "float32"
    channels_last: bool = True
    sampling: Sampling = "random"
    reweight: Literal["effective"] | None = None
    choose: Choice = "last"
    seed: int = 0
    threads: int = 2

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {', '.join(map(str, allowed))}; got {getattr(self, name)!r}")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} lies between {low} and {high}; got {value}")
        if self.points is not None and not self.points:
            raise ValueError("points is empty: name at least one module, or leave it out for the published ones")
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs momentum above 0; got 0. Set nesterov to false or give momentum")

    def plain(self) -> dict[str, Any]:
        """As JSON values, with the fields' names; `Settings.of` reads them back."""
        values = asdict(self)
        values["points"] = None if self.points is None else list(self.points)
        return values

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Settings":
        """From what `plain` gave. KeyError, with near names, for a field that does not exist."""
        known = [field.name for field in fields(cls)]
        for name in plain:
            if name not in known:
                near = difflib.get_close_matches(name, known)
                raise KeyError(f"a training has no setting {name!r}; did you mean one of {near or known}?")
        points = plain.get("points")
        return cls(**{**plain, "points": None if points is None else tuple(points)})


_INFINITE = float("inf")

_CHOICES: Mapping[str, tuple[str | None, ...]] = {
    "augment": (*get_args(Augment), None),
    "schedule": get_args(Schedule),
    "precision": get_args(Precision),
    "selection": get_args(Selection),
    "sampling": get_args(Sampling),
    "reweight": ("effective", None),
    "choose": get_args(Choice),
}

_RANGES: Mapping[str, tuple[float, float]] = {
    "p": (0, 1),
    "sb_share": (0, 1),
    "pseudo_domains": (1, _INFINITE),
    "cache_size": (1, _INFINITE),
    "image_size": (1, _INFINITE),
    "epochs": (1, _INFINITE),
    "batch_size": (1, _INFINITE),
    "learning_rate": (0, _INFINITE),
    "momentum": (0, 1),
    "weight_decay": (0, _INFINITE),
    "clip": (1e-6, _INFINITE),
    "seed": (0, _INFINITE),
    "threads": (1, _INFINITE),
}
