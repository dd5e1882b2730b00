"""The style map: Phi of source and test images in two dimensions, and the shift as arrows (the paper's Figure 1).

    mapped    PCA, and t-SNE where scikit-learn is there, of source images, the sources' centres and test images
    drawn     the map as a figure

A shifted sample's style at the layer is its nearest source's mean style, so its arrow ends at that centre exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from styleshift.report.drawing import canvas, colour, label, line, mark, shape, tag
from styleshift.report.extras import NO_TSNE, has_tsne
from styleshift.report.figure import Figure, Key, Rows, View
from styleshift.report.gallery import score_words, spread_over
from styleshift.sources import SourceStyles

MOST_OF_A_SOURCE = 150
MOST_TESTED = 240
_MOST_ARROWS = 60  # more of them hide what they point from
_LEAST_FOR_TSNE = 8
_WIDTH, _HEIGHT, _EDGE = 640.0, 480.0, 26.0

Spots = list[tuple[float, float]]


@dataclass(frozen=True)
class Spotted:
    """A test image on the map: its file, how far it is, and the number of its nearest source."""

    name: str
    score: float | None
    far: bool
    nearest: int


@dataclass(frozen=True)
class StyleMap:
    """Spots come in this order: the sources' centres, source images, test images.

    source_of: the source's number of each source image. layouts: by name, the spots in two dimensions.
    explained: share of the variance along each axis of the PCA.
    """

    source_of: list[int]
    tested: list[Spotted]
    layouts: dict[str, Spots]
    explained: list[float]


def mapped(sources: SourceStyles, phi: Float[Tensor, "n P"], tested: Sequence[Spotted]) -> StyleMap:
    """The map of some source images, all centres and the test images with these `phi`."""
    rows = [
        index
        for domain in range(len(sources.domains))
        for index in torch.nonzero(sources.sample_domain == domain)[:MOST_OF_A_SOURCE, 0].tolist()
    ]
    # the reservoir is in the order of the images' hashes, so its first ones are a random choice
    points = torch.cat([sources.mean.double(), sources.sample[rows].double(), phi.double().cpu()])
    flat, explained = _principal(points)
    layouts = {"PCA": _spots(flat)}
    if has_tsne() and len(points) >= _LEAST_FOR_TSNE:
        layouts["t-SNE"] = _spots(_neighbours(points))
    return StyleMap([int(sources.sample_domain[row]) for row in rows], list(tested), layouts, explained)


def which_tested(count: int) -> list[int]:
    """The test images that go on the map."""
    return spread_over(range(count), MOST_TESTED) if count else []


def _principal(points: Float[Tensor, "n P"]) -> tuple[Float[Tensor, "n 2"], list[float]]:
    centred = points - points.mean(dim=0)
    _, lengths, axes = torch.linalg.svd(centred, full_matrices=False)
    # a principal axis has no direction of its own: its largest entry is made positive
    axes = axes[:2] * axes[:2].gather(1, axes[:2].abs().argmax(dim=1, keepdim=True)).sign()
    flat = torch.zeros(len(points), 2, dtype=points.dtype)
    flat[:, : len(axes)] = centred @ axes.T
    total = float(lengths.square().sum()) or 1.0
    return flat, [float(length**2) / total for length in lengths[:2]]


def _neighbours(points: Float[Tensor, "n P"]) -> Float[Tensor, "n 2"]:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(points) - 1) / 3)
    made = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(points.float().numpy())
    return torch.from_numpy(made).double()


def _spots(flat: Float[Tensor, "n 2"]) -> Spots:
    return [(round(x, 4), round(y, 4)) for x, y in flat.tolist()]


def drawn(found: StyleMap, name: str, sources: Sequence[str], target: str, alpha: float, at: str) -> Figure:
    """The map as a figure; target: what the test images are called."""
    far = sum(each.far for each in found.tested)
    share = f"{far} of the {len(found.tested)} test images shown are farther than alpha {alpha:g}"
    views = tuple(
        View(layout, _drawing(found, spots, sources, target, layout)) for layout, spots in found.layouts.items()
    )
    tsne = "" if "t-SNE" in found.layouts or has_tsne() else f" {NO_TSNE}."
    keys = [Key(each, each, colour(number), shape(number)) for number, each in enumerate(sources)]
    return Figure(
        name=name,
        title="Style map",
        caption=f"Every point is the style Φ of one image after {at}: means and deviations of all channels, in two "
        f"dimensions. Large marks are the sources' mean styles. {share}; arrows lead from some of them to the nearest "
        "source's mean, where the shift puts their style. Distances are judged in all dimensions, not in this "
        f"plane.{tsne}",
        views=views,
        keys=(*keys, Key("tested", f"{target} (test; filled: shifted)", "ink", "dot")),
        columns=("kind", "domain", *_axes(found), "score", "far", "nearest", "file"),
        rows=_data(found, sources, target),
        switched=True,
        wide=True,
    )


def _drawing(found: StyleMap, spots: Spots, sources: Sequence[str], target: str, layout: str) -> str:
    places = _fitted(spots, equal=layout == "PCA")
    first_image, first_tested = len(sources), len(sources) + len(found.source_of)
    parts = []
    for number, name in enumerate(sources):
        members = [place for place, of in zip(places[first_image:], found.source_of, strict=False) if of == number]
        marks = [
            mark(shape(number), place, 3.2, f"faint {colour(number)}", f"{name}, a training image") for place in members
        ]
        parts.append(tag("g", *marks, data_series=name))
    tested = list(zip(found.tested, places[first_tested:], strict=True))
    far = [(each, place) for each, place in tested if each.far]
    arrows = [_arrow(place, places[each.nearest], each.nearest) for each, place in (far[i] for i in _some(len(far)))]
    marks = [
        mark("dot" if each.far else "ring", place, 3.4, "ink", _tip(each, sources, target)) for each, place in tested
    ]
    parts.append(tag("g", *arrows, *marks, data_series="tested"))
    for number, (name, (x, y)) in enumerate(zip(sources, _names_apart(places[:first_image]), strict=True)):
        centre = mark(shape(number), places[number], 10, f"centre {colour(number)}", f"mean style of {name}")
        parts.append(tag("g", centre, label(x, y, name, "centre-name middle"), data_series=name))
    if layout == "PCA":
        parts.append(_axis_names(found.explained))
    about = (
        f"{layout} of styles: {', '.join(sources)} and the test images of {target}, with arrows to the nearest source."
    )
    return canvas(_WIDTH, _HEIGHT, about, *parts)


def _names_apart(centres: Spots) -> Spots:
    """Above each centre, or below it where the name of one before it is too near."""
    spots: Spots = []
    for x, y in centres:
        hidden = any(abs(x - across) < _NAME_WIDTH and abs(y - 15 - down) < _NAME_HEIGHT for across, down in spots)
        spots.append((x, y + 26 if hidden else y - 15))
    return spots


_NAME_WIDTH, _NAME_HEIGHT = 100.0, 18.0


def _some(count: int) -> list[int]:
    return spread_over(range(count), _MOST_ARROWS) if count else []


def _tip(each: Spotted, sources: Sequence[str], target: str) -> str:
    said = f"score {score_words(each.score)}, {'shifted to' if each.far else 'near, not shifted; nearest is'}"
    return f"{target}, {each.name}: {said} {sources[each.nearest]}"


def _arrow(start: tuple[float, float], end: tuple[float, float], number: int) -> str:
    # it stops short of the centre's mark, so that its head is seen
    across, down = end[0] - start[0], end[1] - start[1]
    length = (across**2 + down**2) ** 0.5
    if length < _HEAD * 3:
        return ""
    right, under = across / length, down / length
    x, y = end[0] - right * _HEAD, end[1] - under * _HEAD
    corners = [(x, y), *((x - 8 * right - side * under, y - 8 * under + side * right) for side in (3, -3))]
    head = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in corners) + "Z"
    return line(start, (x, y), f"arrow {colour(number)}") + tag("path", d=head, class_=f"arrow-head {colour(number)}")


_HEAD = 12.0  # from an arrow's end to the middle of the mark it points to


def _fitted(spots: Spots, equal: bool) -> Spots:
    """Spots on the canvas; equal: one unit for both axes, so that distances are those of the plane."""
    xs, ys = zip(*spots, strict=True)
    wide, high = (max(max(values) - min(values), 1e-9) for values in (xs, ys))
    across, down = (_WIDTH - 2 * _EDGE) / wide, (_HEIGHT - 2 * _EDGE - 10) / high
    if equal:
        across = down = min(across, down)
    left, top = (_WIDTH - wide * across) / 2, (_HEIGHT - 10 - high * down) / 2
    return [(left + (x - min(xs)) * across, top + (max(ys) - y) * down) for x, y in spots]


def _axis_names(explained: Sequence[float]) -> str:
    said = ", ".join(f"axis {place + 1}: {100 * share:.0f} %" for place, share in enumerate(explained))
    return label(_WIDTH - 8, _HEIGHT - 6, f"share of the variance along {said}", "tick end")


def _axes(found: StyleMap) -> list[str]:
    return [f"{layout} {axis}" for layout in found.layouts for axis in (1, 2)]


def _data(found: StyleMap, sources: Sequence[str], target: str) -> Rows:
    kinds = ["centre"] * len(sources) + ["source"] * len(found.source_of) + ["test"] * len(found.tested)
    domains = [*sources, *(sources[number] for number in found.source_of), *([target] * len(found.tested))]
    rows = []
    for place, (kind, domain) in enumerate(zip(kinds, domains, strict=True)):
        spots = [value for spots in found.layouts.values() for value in spots[place]]
        each = found.tested[place - len(kinds)] if kind == "test" else None
        facts = (each.score, each.far, sources[each.nearest], each.name) if each else (None, None, None, None)
        rows.append((kind, domain, *spots, *facts))
    return tuple(rows)
