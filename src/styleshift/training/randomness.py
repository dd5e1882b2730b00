"""Where chance comes from in a training, so that it can be repeated exactly.

    stream             a generator of its own for one purpose and moment: nothing to store, nothing shared
    own_randomness     the global generators are the training's own while it runs, and the caller's again afterwards
    global_state       what a checkpoint keeps of them

Order and augmentation of a batch come from the seed and the batch's number alone. So a resumed run draws them again,
however far ahead or behind the reading of data was when the run was stopped.
"""

import hashlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def stream(seed: int, purpose: str, moment: int = 0) -> torch.Generator:
    """A generator that depends on the run's seed, what it is for, and when: equal in every run of the same settings."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{moment}".encode()).digest()
    # the CPU generator takes in 32 bits of its seed
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "little"))


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seeds the global generators of torch, numpy and Python; the caller's states are put back at the end.

    Nothing of ours draws from them, but a layer of the user's may (dropout does).
    """
    before = global_state()
    try:
        torch.manual_seed(stream(seed, "global torch").initial_seed())
        np.random.seed(stream(seed, "global numpy").initial_seed())  # noqa: NPY002  it is the global one that is meant
        random.seed(stream(seed, "global python").initial_seed())
        yield
    finally:
        restore_global_state(before)


def global_state() -> dict[str, Any]:
    """The states of the global generators of torch, numpy and Python, as tensors and plain values."""
    numpys = np.random.get_state(legacy=False)  # noqa: NPY002
    assert isinstance(numpys, dict)
    version, words, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": {
            "key": torch.from_numpy(numpys["state"]["key"].astype(np.int64)),
            "position": int(numpys["state"]["pos"]),
            "has_gauss": int(numpys["has_gauss"]),
            "gauss": float(numpys["gauss"]),
        },
        "python": {"version": version, "words": torch.tensor(words, dtype=torch.int64), "gauss": gauss},
    }


def restore_global_state(state: Mapping[str, Any]) -> None:
    """Puts back what `global_state` gave."""
    torch.set_rng_state(state["torch"])
    numpys, pythons = state["numpy"], state["python"]
    key = numpys["key"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", key, numpys["position"], numpys["has_gauss"], numpys["gauss"]))  # noqa: NPY002
    random.setstate((pythons["version"], tuple(pythons["words"].tolist()), pythons["gauss"]))
