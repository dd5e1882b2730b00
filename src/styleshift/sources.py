"""The sources' styles: one pass over training images, and what it leaves to remember (paper Sec. 4.2).

    sources_of     one streaming pass over batches; the network runs only as far as the layer
    SourceStyles   per domain the mean of Phi, its variance and the count, and a bounded sample of Phi

Reading: Phi_Sn is measured after training, in eval mode, over all training images of domain n, summed in float64.
Reading: the sample keeps the Phi of the images whose hash is smallest. So it depends on the images alone, not on their
order, on the batch size or on how many machines shared the pass.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from styleshift.adapting import AskedLayout
from styleshift.attaching import features_at
from styleshift.hashing import image_keys
from styleshift.style.clustering import pseudo_domains
from styleshift.style.shapes import Phi, Scores
from styleshift.style.shifting import scores_of
from styleshift.style.statistics import Style, style_of
from styleshift.style.whitening import Whitening, whitening_of
from styleshift.twins import twin
from styleshift.writing import atomically

Domain = str | int
RESERVOIR = 10_000
_FORMAT = "styleshift.styles"
_VERSION = 3  # 2 may hold a gate's styles, 3 further layers and a whitening; a file is written as the oldest that can


@dataclass(frozen=True, eq=False)
class SourceStyles:
    """The styles of the source domains at one layer.

    at: the layer's name.
    domains: their names, sorted.
    counts: images per domain.
    mean: Phi_Sn, the mean of Phi over each domain.
    variance: of every entry of Phi over each domain (divided by the count).
    sample: Phi of some images, at most 10,000; `sample_domain` their domain's index, `sample_key` the images' hashes.
    whitening: coordinates in which distances are taken, where that is not Phi as it is.
    """

    at: str
    domains: tuple[Domain, ...]
    counts: Int64[Tensor, "N"]
    mean: Float64[Tensor, "N P"] = field(repr=False)
    variance: Float64[Tensor, "N P"] = field(repr=False)
    sample: Float32[Tensor, "R P"] = field(repr=False)
    sample_domain: Int64[Tensor, "R"] = field(repr=False)
    sample_key: Int64[Tensor, "R"] = field(repr=False)
    whitening: Whitening | None = field(default=None, repr=False)

    @property
    def style(self) -> Style:
        """The domains' mean styles, `[N, C]` each, in float32."""
        return Style.of_phi(self.mean.float())

    def sampled_styles(self, count: int, seed: int = 0) -> Style:
        """Styles of `count` training images drawn at random (all, where there are fewer)."""
        order = torch.randperm(len(self.sample), generator=torch.Generator().manual_seed(seed))
        return Style.of_phi(self.sample[order[:count]])

    def merged(self, other: "SourceStyles") -> "SourceStyles":
        """What one pass over both parts would have given."""
        if (self.at, self.mean.shape[1]) != (other.at, other.mean.shape[1]):
            raise ValueError(
                f"parts of one pass are measured at one layer; got {self.at!r} with {self.mean.shape[1] // 2} channels "
                f"and {other.at!r} with {other.mean.shape[1] // 2}"
            )
        domains = sorted_names({*self.domains, *other.domains})
        return _pooled(self._over(domains), other._over(domains))

    def clustered(self, clusters: int, seed: int = 0) -> "SourceStyles":
        """The sample of Phi parted into pseudo-domains named "cluster 1" (the largest) and so on, whatever the labels.

        Reading: centres and counts are those of the sample, which is every image of up to 10,000.
        """
        labels = pseudo_domains(self.sample, clusters, seed).tolist()
        if (found := len(set(labels))) < clusters:
            raise ValueError(f"{clusters} clusters need as many different styles; there are {found}. Ask for fewer.")
        digits = len(str(clusters))
        names: list[Domain] = [f"cluster {label + 1:0{digits}}" for label in labels]
        return _summary(self.at, self.sample, names, self.sample_key)

    def whitened(self) -> "SourceStyles":
        """The same, with distances taken where the samples of a domain scatter alike in all directions."""
        return replace(self, whitening=whitening_of(self.sample, self.sample_domain, self.mean))

    def scores(self, phi: Phi) -> Scores:
        """How far samples with these styles are."""
        return scores_of(phi.cpu(), self.style.phi.to(phi.dtype), self.whitening).to(phi.device)

    def save(
        self,
        path: str | Path,
        gate: "SourceStyles | None" = None,
        then: "Sequence[SourceStyles]" = (),
        **further: Any,
    ) -> None:
        """Write a safetensors file, of other layers' styles too; `further` are JSON values for its header."""
        parts = {"": self, **({} if gate is None else {_GATE: gate})}
        parts |= {_THEN.format(number): styles for number, styles in enumerate(then)}
        header = {**self._about(), **further}
        if gate is not None:
            header["gate"] = gate._about()
        if then:
            header["then"] = [styles._about() for styles in then]
        named = {begin + name: value for begin, styles in parts.items() for name, value in styles._kept()}
        young = then or any(name.endswith(_WHITE[0]) for name in named)
        version = "3" if young else "1" if gate is None else "2"
        with atomically(Path(path)) as draft:
            save_file(named, draft, {"format": _FORMAT, "version": version, "header": json.dumps(header)})

    @classmethod
    def load(cls, path: str | Path) -> "SourceStyles":
        """What `save` wrote."""
        return read_styles(path).styles

    def _about(self) -> dict[str, Any]:
        return {"at": self.at, "domains": self.domains}

    def _kept(self) -> Iterator[tuple[str, Tensor]]:
        found = {name: getattr(self, name) for name in _TENSORS}
        found |= dict(zip(_WHITE, self.whitening, strict=True)) if self.whitening else {}
        for name, tensor in found.items():
            # a copy, since a gate may share numbers with the styles that it stands beside
            yield name, tensor.clone(memory_format=torch.contiguous_format)

    def _over(self, domains: tuple[Domain, ...]) -> "SourceStyles":
        """The same over more domains; those that are new are empty."""
        row = torch.tensor([domains.index(domain) for domain in self.domains])
        wide = self.mean.new_zeros(len(domains), self.mean.shape[1])
        return SourceStyles(
            self.at,
            domains,
            self.counts.new_zeros(len(domains)).index_copy(0, row, self.counts),
            wide.index_copy(0, row, self.mean),
            wide.index_copy(0, row, self.variance),
            self.sample,
            row[self.sample_domain],
            self.sample_key,
        )


_TENSORS = ("counts", "mean", "variance", "sample", "sample_domain", "sample_key")
_WHITE = ("white_matrix", "white_centres")
_GATE, _THEN = "gate.", "then{}."


def sources_of(
    model: nn.Module,
    batches: Iterable[object],
    at: str,
    *,
    labelled: bool = True,
    layout: AskedLayout = "auto",
    prefix_tokens: int | None = None,
) -> SourceStyles:
    """The sources' styles at the module called `at`, from one pass over `batches` in eval mode.

    batches: of (images, classes, domains), or pairs, which always mean (images, domains). Domains are integers or
        strings, in any tensor, array or list.
    labelled: False reads the images only (a batch may be just the tensor) and calls them one domain, "all".
    """
    body = twin(model).eval()
    tally = Tally(at)
    channels = None
    for number, batch in enumerate(batches):
        images, domains = images_and_domains(batch, labelled)
        channels = channels or images.shape[1]
        if images.shape[1] != channels:
            raise ValueError(
                f"all batches hold images of as many channels; the first has {channels}, batch {number} (from 0) is "
                f"{list(images.shape)}"
            )
        images = onto_device_of(model, images)
        with torch.no_grad():
            features = features_at(body, [at], images, layout=layout, prefix_tokens=prefix_tokens)
            phi = style_of(features[at]).phi
        tally.add(finite(phi.cpu(), number, at), domains, image_keys(images))
    return tally.total()


def images_and_domains(batch: object, labelled: bool) -> tuple[Tensor, list[Domain]]:
    """What a batch holds: its images, and one domain for each."""
    parts: Sequence[object] = batch if isinstance(batch, Sequence) else (batch,)
    images = parts[0] if parts else None
    if not isinstance(images, Tensor):
        raise ValueError(f"{_BATCH}, the images a tensor; got {_kinds(batch)}")
    if images.ndim == 3:
        raise ValueError(f"a batch holds images [B, C, H, W]; got one {list(images.shape)}. Give a loader's batches.")
    expect_images(images)
    if not labelled:
        return images, ["all"] * len(images)
    if len(parts) not in (2, 3):
        raise ValueError(
            f"{_BATCH}; got {_kinds(batch)}. Images without domain labels need clusters=, as in "
            "fit(model, images, at=..., clusters=3, alpha=2.0)."
        )
    domains = _names(parts[-1])
    if len(domains) != len(images):
        raise ValueError(f"every image has a domain; got {len(domains)} domains for {len(images)} images")
    return images, domains


_BATCH = "a batch is (images, classes, domains) or (images, domains)"


def _kinds(batch: object) -> str:
    if isinstance(batch, tuple | list):
        return f"{type(batch).__name__} of {', '.join(type(part).__name__ for part in batch) or 'nothing'}"
    return type(batch).__name__


def expect_images(images: Tensor) -> None:
    """Say what is needed if this is no batch of images."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images are a tensor [B, C, H, W]; got {type(images).__name__}. Use torch.as_tensor(images).")
    if images.ndim == 3:
        raise ValueError(f"images come in batches [B, C, H, W]; got one {list(images.shape)}. Use images.unsqueeze(0).")
    if images.ndim != 4 or not images.is_floating_point():
        raise ValueError(
            f"images are floating point [B, C, H, W]; got {images.dtype} {list(images.shape)}. "
            "Give them as the model takes them, scaled and normalised."
        )


def onto_device_of(model: nn.Module, images: Tensor) -> Tensor:
    """The images where the model's weights are."""
    first = next(model.parameters(), None)
    return images if first is None else images.to(first.device)


def sorted_names(names: Iterable[Domain]) -> tuple[Domain, ...]:
    """Different domain names in order; integers and strings do not mix."""
    different = set(names)
    words = [name for name in different if isinstance(name, str)]
    numbers = [name for name in different if isinstance(name, int)]
    if words and numbers:
        raise ValueError(f"domains are all integers or all strings; got {min(numbers)} and {min(words)!r}")
    return (*sorted(words), *sorted(numbers))


class Kept(NamedTuple):
    """What a file holds: styles, those of a gate and of further layers where there are some, and the header."""

    styles: SourceStyles
    gate: SourceStyles | None
    then: tuple[SourceStyles, ...]
    header: dict[str, Any]


def read_styles(path: str | Path) -> Kept:
    """What `SourceStyles.save` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except FileNotFoundError:
        raise FileNotFoundError(f"no file of styles at {path}") from None
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is no safetensors file, or not a whole one: {error}") from None
    if about.get("format") != _FORMAT:
        raise ValueError(f"{path} holds no styles; it needs to be a file that `save` wrote")
    if int(about["version"]) > _VERSION:
        raise ValueError(f"{path} is of version {about['version']}, this styleshift reads up to {_VERSION}: update it")
    header: dict[str, Any] = json.loads(about["header"])
    gate = header.get("gate")
    gates = None if gate is None else _whole(path, gate, _taken(tensors, _GATE))
    numbered = enumerate(header.get("then", ()))
    then = tuple(_whole(path, about, _taken(tensors, _THEN.format(number))) for number, about in numbered)
    return Kept(_whole(path, header, tensors), gates, then, header)


def _taken(tensors: dict[str, Tensor], begin: str) -> dict[str, Tensor]:
    """The tensors whose names begin so, taken out, by the rest of their names."""
    return {name.removeprefix(begin): tensors.pop(name) for name in list(tensors) if name.startswith(begin)}


def _whole(path: str | Path, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> SourceStyles:
    _expect_whole(path, len(about["domains"]), tensors)
    white = [tensors.pop(name) for name in _WHITE if name in tensors]
    return SourceStyles(about["at"], tuple(about["domains"]), **tensors, whitening=Whitening(*white) if white else None)


def _expect_whole(path: str | Path, domains: int, tensors: dict[str, Tensor]) -> None:
    """A file that was altered may have our header, and tensors that do not belong together."""
    found = {name: list(tensor.shape) for name, tensor in tensors.items()}
    width, samples = found.get("mean", [])[1:], found.get("sample_key", [])
    shapes = ([domains], [domains, *width], [domains, *width], [*samples, *width], samples, samples)
    wanted = dict(zip(_TENSORS, shapes, strict=True))
    if any(name in found for name in _WHITE):
        wanted |= dict(zip(_WHITE, ([*width, *width], [domains, *width]), strict=True))
    if found != wanted:
        raise ValueError(f"{path} is damaged: styles of {domains} domains need {wanted}; it holds {found}")
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError(f"{path} is damaged: it holds NaN or infinity. Fit again.")


class Tally:
    """What a pass has seen so far."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.parts: list[SourceStyles] = []

    def add(self, phi: Phi, domains: list[Domain], keys: Int64[Tensor, "B"]) -> None:
        if len(phi):
            self.parts.append(_summary(self.at, phi, domains, keys))
        if len(self.parts) > _PARTS_AT_ONCE:
            self.parts = [self._merged()]

    def total(self) -> SourceStyles:
        if not self.parts:
            raise ValueError(NOTHING_CAME)
        return self._merged()

    def _merged(self) -> SourceStyles:
        # the latest first: so the long part, which has the full sample, is gone through once and not at every step
        return reduce(SourceStyles.merged, reversed(self.parts))


NOTHING_CAME = "no image came: `batches` gave nothing. A generator can be read once; give a fresh one."
_PARTS_AT_ONCE = 16


def _summary(at: str, phi: Phi, names: Sequence[Domain], keys: Int64[Tensor, "B"]) -> SourceStyles:
    domains = sorted_names(names)
    index = {domain: row for row, domain in enumerate(domains)}
    row = torch.tensor([index[name] for name in names])
    counts = torch.bincount(row, minlength=len(domains))
    wide = phi.double()
    zeros = wide.new_zeros(len(domains), phi.shape[1])
    mean = zeros.index_add(0, row, wide) / counts[:, None]
    variance = zeros.index_add(0, row, (wide - mean[row]).square()) / counts[:, None]
    return SourceStyles(at, domains, counts, mean, variance, *_smallest(phi.float(), row, keys))


def _pooled(a: SourceStyles, b: SourceStyles) -> SourceStyles:
    """Two summaries over the same domains as one (Chan et al.'s update, stable for any number of images)."""
    counts = a.counts + b.counts
    share = (b.counts.double() / counts)[:, None]
    apart = b.mean - a.mean
    variance = torch.lerp(a.variance, b.variance, share) + apart.square() * share * (1 - share)
    kept = _smallest(*(torch.cat([getattr(part, name) for part in (a, b)]) for name in _TENSORS[3:]))
    return SourceStyles(a.at, a.domains, counts, a.mean + apart * share, variance, *kept)


def _smallest(phi: Tensor, row: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # copies of one image have one key, so their domain decides
    kept = torch.from_numpy(np.lexsort((row.numpy(), keys.numpy()))[:RESERVOIR])
    return phi[kept], row[kept], keys[kept]


def _names(domains: object) -> list[Domain]:
    if isinstance(domains, Tensor | np.ndarray):
        domains = domains.tolist()
    if isinstance(domains, str) or not isinstance(domains, Iterable):
        raise ValueError(f"domains come one an image, in a tensor, array or list; got {domains!r}")
    names: list[Any] = [name.item() if isinstance(name, Tensor | np.generic) else name for name in domains]
    for name in names:
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise ValueError(f"a domain is an integer or a string, one an image; got {name!r}")
    return names


def finite(phi: Phi, batch: int, at: str) -> Phi:
    broken = int((~phi.isfinite().all(dim=1)).sum())
    if broken:
        raise ValueError(
            f"{broken} of {len(phi)} images in batch {batch} (from 0) give NaN or infinity at {at!r}. "
            "Check the images and the model's weights; a mean over them would be NaN."
        )
    return phi
