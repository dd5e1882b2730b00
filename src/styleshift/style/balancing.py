"""Style balancing (SB): every class in every style, within a mini-batch (paper Sec. 4.1).

    planned_moves   which sample takes which domain's style      steps 1 and 2
    lenders         the two samples s1', s2' that lend it        step 3
    balanced        the features after the moves                 Eq. 6

Reading: Q_k need not be whole. The targets are whole numbers that sum to the class's total and differ by at most 1;
the domains that have most keep the extra one, so the fewest samples move. `rounding="ceil"` is Algorithm 1's literal
loop, which moves ceil(|S_nk| - Q_k) samples.
Reading: a move goes to the other domain with the largest remaining deficit, ties to the lower index.
Reading: s1' and s2' are members of the other domain in this mini-batch, of any class, two different ones where there
are two. A domain that is not in the batch lends nothing: moves into it are dropped.
Reading: styles come from the features before any move, so a moved sample does not lend its new style.
"""

from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from styleshift.style.draws import Draws
from styleshift.style.ranking import sorted_with_places, wide
from styleshift.style.selection import least_missed
from styleshift.style.shapes import Features, Indices, Labels, Phi, Strengths

Rounding = Literal["whole", "ceil"]
Selection = Literal["least_missed", "random"]


def planned_moves(
    classes: Labels,
    domains: Labels,
    phi: Phi,
    n_domains: int,
    *,
    rounding: Rounding = "whole",
    selection: Selection = "least_missed",
    draws: Draws | None = None,
) -> list[tuple[int, int]]:
    """The moves `(sample, to_domain)` that balance every class over the domains: classes ascending, in them domains
    ascending, in them in order of choice. Moves into a domain that is absent from the batch are left out.

    n_domains: how many source domains there are, present in this batch or not.
    rounding: what to do where the class's total is no multiple of n_domains, see the readings above.
    selection: "least_missed" as the paper proposes, or "random", which its appendix compares with.
    draws: where random selection takes its numbers from.
    """
    moves = wanted_moves(classes, domains, phi, n_domains, rounding=rounding, selection=selection, draws=draws)
    present = set(domains.tolist())
    return [(sample, domain) for sample, domain in moves if domain in present]


def wanted_moves(
    classes: Labels,
    domains: Labels,
    phi: Phi,
    n_domains: int,
    *,
    rounding: Rounding = "whole",
    selection: Selection = "least_missed",
    draws: Draws | None = None,
) -> list[tuple[int, int]]:
    """`planned_moves` with those into an absent domain, which nobody can lend a style."""
    expect_choices(rounding, selection)
    _expect_batch(classes, domains, phi, n_domains)
    class_of, domain_of = (labels.to("cpu", torch.int64).numpy() for labels in (classes, domains))
    styles = phi.detach().cpu()
    choose = least_missed if selection == "least_missed" else _random_choice(draws or Draws())
    moves: list[tuple[int, int]] = []
    for members_of in _members(class_of, domain_of, n_domains):
        surplus, deficit = imbalance([len(members) for members in members_of], rounding)
        for home, members in enumerate(members_of):
            if surplus[home]:
                chosen = members[choose(styles[torch.from_numpy(members)], surplus[home])]
                moves.extend((sample, _moved_on(deficit, home)) for sample in chosen.tolist())
    return moves


def imbalance(counts: list[int], rounding: Rounding = "whole") -> tuple[list[int], list[int]]:
    """Of one class, how many samples every domain gives away, and how many it lacks (step 1)."""
    least, extra = divmod(sum(counts), len(counts))
    if rounding == "ceil":
        # ceil(n - Q) is n - floor(Q); and who lacks most is the same, whatever all are compared with
        return [max(0, n - least) for n in counts], [least - n for n in counts]
    by_count = sorted(range(len(counts)), key=lambda domain: -counts[domain])
    keeps_extra = set(by_count[:extra])
    targets = [least + (domain in keeps_extra) for domain in range(len(counts))]
    deficit = [target - n for target, n in zip(targets, counts, strict=True)]
    return [max(0, -lacking) for lacking in deficit], deficit


def lenders(domains: Labels, to_domains: Indices, draws: Draws) -> tuple[Indices, Indices]:
    """For every move two members of the domain it goes to: different ones, where the batch has two."""
    by_domain = torch.argsort(domains, stable=True)
    sizes = torch.bincount(domains)
    start, size = (sizes.cumsum(0) - sizes)[to_domains], sizes[to_domains]
    # float64: a float32 just below 1 times a size would round up to the size itself
    chance = draws.uniform(2, len(to_domains)).double().to(domains.device)
    first = (chance[0] * size).long()
    others = (size - 1).clamp(min=1)
    second = (chance[1] * others).long()
    second += (second >= first) & (size > 1)
    return by_domain[start + first], by_domain[start + second]


def balanced(
    features: Features,
    samples: Indices,
    first: Indices,
    second: Indices,
    strength: Strengths,
    detach_style: bool = False,
) -> Features:
    """The features after the moves (Eq. 6): `samples[i]` keeps its places and takes, rank by rank, lambda of
    `first[i]`'s values and 1 - lambda of `second[i]`'s. Samples that do not move stay as they are.

    strength: lambda, one per move.
    detach_style: cut the gradient to the two lenders as well (Eq. 6 stops only the content term).
    """
    if not len(samples):
        return features
    rows, where = torch.unique(torch.cat([samples, first, second]), return_inverse=True)
    # in float32 at least: half precision would round lambda itself
    ranked, places = sorted_with_places(wide(features[rows].flatten(2)))
    content, one, other = where.chunk(3)
    lent = ranked.detach() if detach_style else ranked
    style = torch.lerp(lent[other], lent[one], strength[:, None, None].to(ranked.dtype)).to(features.dtype)
    moved = features[samples]
    placed = torch.empty_like(style).scatter(2, places[content], style).view(moved.shape)
    # a clone keeps the memory layout, which index_copy alone does not
    return features.clone().index_copy_(0, samples, placed + (moved - moved.detach()))


def _members(
    classes: NDArray[np.int64], domains: NDArray[np.int64], n_domains: int
) -> Iterator[list[NDArray[np.int64]]]:
    """For every class of the batch, the samples of every domain."""
    for k in np.unique(classes):
        of_class = np.flatnonzero(classes == k)
        yield [of_class[domains[of_class] == n] for n in range(n_domains)]


def _moved_on(deficit: list[int], home: int) -> int:
    """The other domain that lacks most; from now on it lacks one sample less, and `home` one more."""
    domain = max((n for n in range(len(deficit)) if n != home), key=deficit.__getitem__)
    deficit[domain] -= 1
    deficit[home] += 1
    return domain


def _random_choice(draws: Draws) -> Callable[[Tensor, int], list[int]]:
    return lambda phi, count: draws.permutation(len(phi))[:count].tolist()


def expect_choices(rounding: str, selection: str) -> None:
    """Say which ways to round and to select there are if these are none of them."""
    for name, choice, choices in (
        ("rounding", rounding, get_args(Rounding)),
        ("selection", selection, get_args(Selection)),
    ):
        if choice not in choices:
            raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}; got {choice!r}")


def expect_labels(classes: Tensor, domains: Tensor) -> None:
    """Say what is needed if these are not a class and a domain for every sample."""
    for name, labels in (("classes", classes), ("domains", domains)):
        if not isinstance(labels, Tensor):
            raise TypeError(f"{name} is a tensor of one integer a sample, [B]; got {type(labels).__name__}")
        if labels.ndim != 1 or labels.is_floating_point() or labels.dtype == torch.bool:
            raise ValueError(f"{name} is one integer a sample, [B]; got {labels.dtype} {list(labels.shape)}")
    if len(classes) != len(domains):
        raise ValueError(f"one class and one domain a sample; got {len(classes)} classes and {len(domains)} domains")


def _expect_batch(classes: Tensor, domains: Tensor, phi: Tensor, n_domains: int) -> None:
    expect_labels(classes, domains)
    if phi.ndim != 2 or len(phi) != len(classes):
        raise ValueError(f"balancing compares one Phi a sample, [{len(classes)}, 2C]; got {list(phi.shape)}")
    lowest, highest = (int(domains.min()), int(domains.max())) if len(domains) else (0, -1)
    if lowest < 0 or highest >= n_domains:
        raise ValueError(
            f"domains are numbered 0 to {n_domains - 1}; got {lowest} to {highest}. "
            "Renumber them, or say how many there are with n_domains."
        )
