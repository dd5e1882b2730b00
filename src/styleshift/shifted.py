"""A model that shifts: fitted to its sources once, then called like the model (paper Sec. 4.2, Algorithm 2).

    fit            measure the sources' styles, and give a model that shifts
    load           the same from a file
    ShiftedModel   runs, explains and saves itself

The user's model stays plain: what shifts is a twin, a second body over the same weights.
"""

import copy
import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from styleshift.adapting import AskedLayout
from styleshift.attaching import Calls, attach, features_at
from styleshift.calibrating import (
    Auto,
    Calibration,
    Metric,
    Reading,
    Wish,
    at_of,
    calibrated,
    expect_agreement,
    shifting,
)
from styleshift.layer_choice import layers_to_try, with_chosen_layers
from styleshift.layers._gating import Gate
from styleshift.placing import body_and_places, checked_names
from styleshift.sources import (
    NOTHING_CAME,
    Domain,
    SourceStyles,
    expect_images,
    images_and_domains,
    read_styles,
)
from styleshift.style.shifting import Variant, gaps
from styleshift.style.statistics import style_of
from styleshift.twins import twin


def fit(
    model: nn.Module,
    batches: Iterable[object],
    at: str | Sequence[str] | None = None,
    alpha: float | Auto = 3.0,
    *,
    gate_at: str | None = None,
    false_shift: float = 0.05,
    metric: Metric | None = None,
    holdout: Iterable[object] | None = None,
    clusters: int | None = None,
    variant: str | Variant = "ts",
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
    calls: Calls = "every",
    seed: int = 0,
    preprocessing: Mapping[str, Any] | None = None,
) -> "ShiftedModel":
    """A model that in eval mode renders far samples in the nearest source domain's style, and is otherwise `model`.

    batches: the training images as the model takes them, of (images, classes, domains), or pairs, which always mean
        (images, domains); with `clusters` only the images are read. One pass, in bounded memory.
    at: the module after which styles are shifted. The paper takes the 2nd residual block for PACS, the 1st elsewhere.
        Several, in the order in which they run: whoever is far is shifted after each, best a part of the way each time
        (variant="partial=0.6"); the first decides unless `gate_at` does.
        "auto" tries layers on strange renderings of held-out images (`layer_choice`); it needs alpha="auto".
    alpha: how many times the sources' own spread counts as far; 0 shifts all. The paper takes 3 for classification,
        5 for retrieval, 2 with clusters. "auto" takes what a share `false_shift` of held-out images is above.
    gate_at: the module where it is decided who is far, at or before `at`; left out, it is `at`.
    false_shift: with alpha="auto", the share of familiar images that may be shifted.
    metric: with alpha="auto", how far apart two styles are: "mahalanobis", by how the domains' images scatter, so that
        more strange images are told from familiar ones, or "euclidean" as in the paper, and with alpha a number.
    holdout: with alpha="auto", batches of source images that find the threshold and make no centre; best of images that
        the model was not trained on. Left out, a tenth of `batches` is held out, chosen by the images' hashes.
    clusters: without domain labels, how many pseudo-domains k-means makes; the paper takes 3.
    variant: "ts" as proposed, "all", "sampled", "soft", "partial", each possibly with a number ("partial=0.8").
    layout, prefix_tokens, calls: see `attach`.
    seed: of k-means, of the sampled variant and of the strange renderings.
    preprocessing: how images were prepared (JSON values), kept in the saved file for whoever loads it.
    """
    _expect_numbers(alpha, clusters)
    kind = Variant.named(variant)
    expect_agreement(at, alpha, gate_at, kind)
    wish = Wish(alpha, false_shift, metric, holdout, clusters, seed)
    ahead = iter(batches)
    if (first := next(ahead, None)) is None:
        raise ValueError(NOTHING_CAME)
    images, _ = images_and_domains(first, labelled=clusters is None)
    origin = Origin(fingerprint(model), images.shape[1], preprocessing)
    reading = Reading(model, clusters is None, layout, prefix_tokens)
    if at == "auto":
        body, _, there = body_and_places(model, images, layout, prefix_tokens)
        layers = layers_to_try(body, there, gate_at)
        found = with_chosen_layers(reading, chain([first], ahead), wish, layers, gate_at, kind, calls)
    else:
        names = checked_names(model, images, at, gate_at, layout, prefix_tokens, calls)
        found = calibrated(reading, chain([first], ahead), wish, names, gate_at, kind)
    attaching = Attaching(found.sources.at, layout, prefix_tokens, calls)
    further = (found.gate, found.calibration, found.then)
    return ShiftedModel(model, found.sources, found.alpha, found.variant, attaching, seed, origin, *further)


def load(model: nn.Module, path: str | Path, *, strict: bool = True) -> "ShiftedModel":
    """The shifting model that `save` wrote, around `model`.

    strict: refuse a model whose weights are not those that the styles were measured with; False only warns.
    """
    sources, gate, then, header = read_styles(path)
    if "shift" not in header:
        raise ValueError(f"{path} holds styles alone, no fitted model: it needs to be a file that a fitted model saved")
    shift = header["shift"]
    origin = Origin(**shift["origin"])
    _expect_weights(model, origin.fingerprint, strict)
    attaching = Attaching(**shift["attaching"])
    calibration = Calibration.of(shift["calibration"]) if "calibration" in shift else None
    kind = Variant(**shift["variant"])
    return ShiftedModel(model, sources, shift["alpha"], kind, attaching, shift["seed"], origin, gate, calibration, then)


@dataclass(frozen=True)
class Attaching:
    """Where the shift stands in the model; the fields are `attach`'s.

    gate_at: where it is decided who is far, if styles of its own say so there.
    then: further layers that shift.
    """

    at: str
    layout: AskedLayout = "auto"
    prefix_tokens: int | None = None
    calls: Calls = "every"
    gate_at: str | None = None
    then: tuple[str, ...] = ()

    @property
    def decided_at(self) -> str:
        """The layer whose styles say who is far."""
        return self.gate_at or self.at


@dataclass(frozen=True)
class Origin:
    """What the styles were measured with.

    fingerprint: of the model's weights at that time.
    channels: of the images.
    preprocessing: how images were prepared, in JSON values.
    """

    fingerprint: str
    channels: int | None = None
    preprocessing: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        try:
            kept = json.loads(json.dumps(self.preprocessing))
        except TypeError as error:
            raise ValueError(f"preprocessing is kept as JSON (numbers, strings, lists, dicts): {error}") from None
        object.__setattr__(self, "preprocessing", kept)


@dataclass(frozen=True)
class Seen:
    """What the shift sees in some images.

    score: how far each is where that is decided, in spreads of the sources; `inf` where these have none.
    far: which are shifted: those with a score above alpha.
    nearest: index of the nearest source in `domains`.
    """

    score: Float[Tensor, "B"]
    far: Bool[Tensor, "B"]
    nearest: Int64[Tensor, "B"]
    domains: tuple[Domain, ...]


class ShiftedModel(nn.Module):
    """Called like the model it was made from; made by `fit` and `load`. It starts in eval mode, where it shifts.

    `sources` are the styles it shifts to, `shifting` is the layer that does it; `then` are the styles of further layers
    that shift the same samples. `gate` are the styles by which it is decided who is far, where these are not `sources`;
    `calibration` says how alpha="auto" found its number.
    """

    def __init__(
        self,
        model: nn.Module,
        sources: SourceStyles,
        alpha: float = 3.0,
        variant: Variant | None = None,
        attaching: Attaching | None = None,
        seed: int = 0,
        origin: Origin | None = None,
        gate: SourceStyles | None = None,
        calibration: Calibration | None = None,
        then: Sequence[SourceStyles] = (),
    ) -> None:
        super().__init__()
        variant = variant or Variant()
        gate = None if variant.everything else gate
        self.sources, self.then = sources, tuple(then)
        names = tuple(styles.at for styles in then)
        self.attaching = replace(attaching or Attaching(sources.at), gate_at=at_of(gate), then=names)
        self.gate = gate
        self.calibration = calibration
        self.seed = seed
        self.origin = origin or Origin(fingerprint(model))
        self.model = twin(model)
        decides = None if variant.everything else gate or (sources if then or sources.whitening else None)
        deciding = None if decides is None else Gate(decides.style, alpha, decides.whitening)
        self.shifting, *further = (shifting(styles, alpha, variant, seed, deciding) for styles in (sources, *then))
        self.further = nn.ModuleList(further)
        first = next(model.parameters(), None)
        if first is not None:
            self.shifting.to(first.device)
            self.further.to(first.device)
        self._hang_on()
        self.eval()

    def forward(self, images: Tensor) -> Any:
        """What the model gives for these images, `[B, C, H, W]`, with far ones shifted."""
        self._expect(images)
        if self.shifting.gate is None:
            return self.model(images)
        try:
            return self.model(images)
        finally:
            self.shifting.gate.forget()

    @property
    def alpha(self) -> float:
        """How many times the sources' own spread counts as far."""
        return self.shifting.alpha

    @torch.no_grad()
    def explain(self, images: Tensor) -> Seen:
        """How far these images are, which of them are shifted, and which source each is nearest to."""
        self._expect(images)
        place = self.attaching
        body = twin(self.model).eval()
        gate = place.decided_at
        layers = list(dict.fromkeys([gate, place.at]))
        found = features_at(body, layers, images, layout=place.layout, prefix_tokens=place.prefix_tokens)
        features = found[place.at]
        score = (self.shifting.gate or self.shifting).scores(found[gate])
        far = torch.ones_like(score, dtype=torch.bool) if self.shifting.variant.everything else score > self.alpha
        own = style_of(features).phi
        return Seen(score, far, gaps(own, self.shifting.sources.phi.to(own)).argmin(dim=1), self.sources.domains)

    def save(self, path: str | Path) -> None:
        """Write styles, layer, alpha, domains, counts, preprocessing and the weights' fingerprint, but not the weights.

        The fingerprint is of the weights that the styles were measured with: after more training, fit again.
        """
        shift = {
            "alpha": self.alpha,
            "variant": asdict(self.shifting.variant),
            "attaching": {name: value for name, value in asdict(self.attaching).items() if name not in _KNOWN},
            "seed": self.seed,
            "origin": asdict(self.origin),
        }
        if self.calibration is not None:
            shift["calibration"] = asdict(self.calibration)
        self.sources.save(path, gate=self.gate, then=self.then, shift=shift)

    def _expect(self, images: Tensor) -> None:
        expect_images(images)
        if self.origin.channels not in (None, images.shape[1]):
            raise ValueError(
                f"images are [B, {self.origin.channels}, H, W], as those that the model was fitted on; got "
                f"{list(images.shape)}"
            )

    def _hang_on(self) -> None:
        place = self.attaching
        layers: dict[str, nn.Module] = dict(zip((place.at, *place.then), (self.shifting, *self.further), strict=True))
        if (gate := self.shifting.gate) is not None:
            own = layers.get(place.decided_at)
            layers[place.decided_at] = gate if own is None else nn.Sequential(gate, own)
        attach(
            self.model,
            layers,
            layout=place.layout,
            prefix_tokens=place.prefix_tokens,
            calls=place.calls,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "ShiftedModel":
        # hooks stay with the model they were put on, so a copy gets its own
        double = self.__class__.__new__(self.__class__)
        memo[id(self)] = double
        double.__setstate__({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return double

    def __setstate__(self, state: dict[str, Any]) -> None:
        # a shallow copy would share the dict, and with it the model that is put in place below
        self.__dict__.update(state, _modules=dict(state["_modules"]))
        self.model = twin(self.model)
        self._hang_on()


_KNOWN = ("gate_at", "then")  # from the styles beside them


def fingerprint(model: nn.Module) -> str:
    """A hash of the weights: equal where, name for name, every parameter and buffer is."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        # num_batches_tracked changes no output and is missing in many weight files; extra state is no tensor
        if isinstance(tensor, Tensor) and not name.endswith("num_batches_tracked"):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _expect_numbers(alpha: float | Auto, clusters: int | None) -> None:
    """Before the pass over all images, not after it."""
    if alpha != "auto" and (isinstance(alpha, str) or not alpha >= 0):
        raise ValueError(
            f"alpha is at least 0 (0 shifts every sample; the paper takes 3), or 'auto' to find it; got {alpha}"
        )
    if clusters is not None and clusters < 1:
        raise ValueError(f"clusters is how many pseudo-domains to make, at least 1 (the paper takes 3); got {clusters}")


def _expect_weights(model: nn.Module, expected: str, strict: bool) -> None:
    if fingerprint(model) == expected:
        return
    said = (
        "the styles were measured with other weights than this model's, so distances to them mean nothing. "
        "Load the weights first, or fit again"
    )
    if strict:
        raise ValueError(f"{said}; strict=False goes on all the same.")
    warnings.warn(said, stacklevel=3)
