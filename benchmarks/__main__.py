"""What is measured, and where the result is written: `scripts/bench WHAT --json FILE`."""

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import layers, loading, memory, planning, threads

ROUNDS = {"layers": 7, "planning": 7, "loading": 12, "memory": 3, "threads": 12}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Ratios, each measured in one run.")
    parser.add_argument("what", choices=ROUNDS, nargs="?", default="layers")
    parser.add_argument("--rounds", type=int, help="timed calls of each; for memory and threads, steps")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    options = parser.parse_args(arguments)
    torch.set_num_threads(2)
    lines = measured(options.what, options.rounds or ROUNDS[options.what])
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        command = f"scripts/bench {options.what} --json {options.json}"
        made_on = {"processor": processor(), "torch": torch.__version__, "threads": torch.get_num_threads()}
        facts = {"command": command, **made_on, "measured": lines}
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


def measured(what: str, rounds: int) -> list[dict[str, Any]]:
    """Prints the comparisons and gives them as JSON values."""
    if what == "loading":
        found = loading.compare(rounds)
        print(found)
        return [{**asdict(found), "share": found.share, "ratio": found.ratio}]
    if what == "memory":
        peaks = memory.compare(rounds)
        print("\n".join(map(str, peaks)))
        return [{**asdict(peak), "limit": memory.LIMIT} for peak in peaks]
    if what == "threads":
        together = threads.compare(rounds)
        print("\n".join(map(str, together)))
        return [asdict(each) for each in together]
    comparisons = (layers if what == "layers" else planning).compare(rounds)
    for comparison in comparisons:
        print(comparison)
    return [{**asdict(comparison), "ratio": comparison.ratio} for comparison in comparisons]


def processor() -> str:
    """Its name, and the family and model that tell its generation, where the system says them."""
    lines = _CPU.read_text().splitlines() if _CPU.is_file() else []
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    known = [f"{word} {facts[key]}".strip() for word, key in _NAMES.items() if key in facts]
    return ", ".join(known) or platform.processor() or platform.machine()


_CPU = Path("/proc/cpuinfo")
_NAMES = {"": "model name", "family": "cpu family", "model": "model"}


if __name__ == "__main__":
    main()
