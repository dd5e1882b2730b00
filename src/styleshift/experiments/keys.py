"""A run's key: the hash of everything its result depends on, so that nothing is run twice and nothing is mixed up.

protocol    what two runs must share to stand in one table
cell        the protocol with method, target and seed: a place in a table, whoever runs it
key         the cell with the data's and the first weights' sha256: one run
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Raise it whenever a fix changes results: records made before then fill no cell any more.
PROTOCOL_VERSION = 1

Facts = Mapping[str, Any]

# in the training's settings, but not in a protocol: what the rows and seeds of one table differ in
_OF_A_ROW = ("augment", "balance", "points", "pseudo_domains", "reweight", "sampling", "seed", "selection", "shift_at")


def protocol_of(facts: Facts) -> str:
    """Of a run's facts (`planning.Run.facts`): equal for runs that can be compared."""
    shared = {name: value for name, value in facts.items() if name not in ("domain", "training")}
    shared["training"] = {name: value for name, value in facts["training"].items() if name not in _OF_A_ROW}
    return hash_of(shared)


def cell_of(facts: Facts) -> str:
    """Of a run's facts: equal for the same run on any machine."""
    return hash_of(facts)


def key_of(facts: Facts, data: str, weights: str | None) -> str:
    """Of a run.

    data: names the images' content. weights: sha256 of the file that the training starts from, None for random ones.
    """
    return hash_of({"facts": facts, "data": data, "weights": weights})


def hash_of(values: Mapping[str, Any]) -> str:
    """sha256 of plain JSON values, whatever the order of their names."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
