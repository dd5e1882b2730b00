"""Who is trained on, who chooses the model, who is tested: leave-one-domain-out and single source (paper Sec. 5).

Three ways to split a domain, whose numbers must not be mixed:

    official    the published train and validation lists; every image of a target (or its published test list)
    domainbed   80 % to train and 20 % to validate, drawn for each domain; a target is tested on its 80 %
    random      90 % to train and 10 % to validate, drawn for each domain; every image of a target

No image of a target is ever in `train` or `validation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from styleshift.data.domains import Domains, Indices

VALIDATION_SHARE = {"domainbed": 0.2, "random": 0.1}
SPLITS = ("official", *VALIDATION_SHARE)


@dataclass(frozen=True, eq=False)
class Split:
    """Indices into a `Domains`, and the numbers of the domains they belong to."""

    train: Indices
    validation: Indices
    test: Indices
    sources: tuple[int, ...]
    targets: tuple[int, ...]


def leave_one_domain_out(dataset: Domains, target: str, split: str = "official", seed: int = 0) -> Split:
    """Train on every domain but `target`, test on `target`.

    target: a domain's name, or enough of its beginning.
    split: "official", "domainbed" or "random".
    seed: draws the last two.
    """
    left_out = dataset.domain(target)
    sources = tuple(number for number in range(len(dataset.domain_names)) if number != left_out)
    return _split(dataset, sources, (left_out,), split, seed)


def single_source(dataset: Domains, source: str, split: str = "official", seed: int = 0) -> Split:
    """Train on `source` alone, test on every other domain; arguments as in `leave_one_domain_out`."""
    only = dataset.domain(source)
    targets = tuple(number for number in range(len(dataset.domain_names)) if number != only)
    return _split(dataset, (only,), targets, split, seed)


def _split(dataset: Domains, sources: tuple[int, ...], targets: tuple[int, ...], split: str, seed: int) -> Split:
    if not sources or not targets:
        raise ValueError(f"{dataset.name} has the one domain {dataset.domain_names}; a source and a target are needed.")
    parts = _official(dataset) if split == "official" else _drawn(dataset, split, seed)
    return Split(
        train=_of(dataset, parts[0], sources),
        validation=_of(dataset, parts[1], sources),
        test=_of(dataset, parts[2], targets),
        sources=sources,
        targets=targets,
    )


def _official(dataset: Domains) -> list[Indices]:
    if dataset.lists is None:
        raise ValueError(
            f'{dataset.name} comes without published lists, so it has no "official" split; '
            f"take one of {', '.join(VALIDATION_SHARE)}."
        )
    # an image that a list names twice counts twice
    return [np.repeat(np.arange(len(dataset)), rows) for rows in dataset.lists.T]


def _drawn(dataset: Domains, split: str, seed: int) -> list[Indices]:
    if split not in VALIDATION_SHARE:
        near = get_close_matches(split, SPLITS, n=1) or SPLITS
        raise KeyError(f"there is no split {split!r}; did you mean {' or '.join(near)}?")
    everything = np.arange(len(dataset))
    held_out = np.zeros(len(dataset), dtype=bool)
    for number in range(len(dataset.domain_names)):
        # a domain's draw does not depend on which other domains there are
        shuffled = np.random.default_rng((seed, number)).permutation(np.flatnonzero(dataset.domains == number))
        held_out[shuffled[: int(len(shuffled) * VALIDATION_SHARE[split])]] = True
    return [everything[~held_out], everything[held_out], everything[~held_out] if split == "domainbed" else everything]


def _of(dataset: Domains, indices: Indices, domains: Sequence[int]) -> Indices:
    return indices[np.isin(dataset.domains[indices], domains)]
