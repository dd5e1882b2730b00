"""Freed memory is kept inside the block, and only there."""

import platform
import resource

import pytest
import torch

from styleshift.training import allocating
from styleshift.training.allocating import freed_memory_kept

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
LARGE = 40 << 20  # bytes; glibc maps it anew each time


def pages_touched(times: int) -> int:
    """Memory pages that the system had to fill while a large tensor was made and freed again and again."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.zeros(LARGE, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_what_was_freed_is_used_again_inside_the_block_only() -> None:
    with freed_memory_kept():
        pages_touched(1)
        inside = pages_touched(8)
    after = pages_touched(8)
    assert inside * 4 < after


def test_the_outer_of_two_blocks_ends_it() -> None:
    with freed_memory_kept():
        with freed_memory_kept():
            pages_touched(1)
        inside = pages_touched(8)
    assert inside * 4 < pages_touched(8)


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(allocating, "_set", lambda *given: asked.append(given))
    with freed_memory_kept():
        assert asked
    asked.clear()
    monkeypatch.setattr(allocating.sys, "platform", "win32")
    with freed_memory_kept():
        assert not asked
