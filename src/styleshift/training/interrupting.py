"""Ctrl-C and SIGTERM wait for the end of a step: a training is saved between two steps, never within one."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether one was asked to stop. A second signal is not held: KeyboardInterrupt at once.

    One that was not answered within the block is KeyboardInterrupt after it. Signals reach the main thread alone; in
    another one nothing is held.
    """
    asked = threading.Event()

    def hold(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = {number: signal.signal(number, hold) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    # it came when no step was left to end, and must not be lost: more trainings may follow this one
    if asked.is_set():
        raise KeyboardInterrupt("interrupted at the end of a training")
