"""Signals wait for the end of a step."""

import contextlib
import os
import signal
import threading

import pytest

from styleshift.training.interrupting import interrupts_held


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_not_raised(number: signal.Signals) -> None:
    with contextlib.suppress(KeyboardInterrupt), interrupts_held() as asked:
        assert not asked()
        os.kill(os.getpid(), number)
        assert asked()


def held(*answers: str) -> None:
    """A block that gets a signal for each answer, and one that answers nothing for an empty word."""
    with interrupts_held() as asked:
        for answer in answers:
            os.kill(os.getpid(), signal.SIGINT)
            if answer and asked():
                raise KeyboardInterrupt(answer)


def test_a_signal_that_nobody_answered_is_raised_at_the_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="at the end of a training"):
        held("")
    assert signal.getsignal(signal.SIGINT) == before


def test_an_answer_to_a_signal_is_not_replaced() -> None:
    with pytest.raises(KeyboardInterrupt, match="after step 3"):
        held("after step 3")


def test_a_second_signal_is_not_held() -> None:
    with pytest.raises(KeyboardInterrupt) as interrupt:
        held("", "")
    assert not str(interrupt.value)


def test_the_callers_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interrupts_held():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_nothing_is_held() -> None:
    said: list[bool] = []

    def ask() -> None:
        with interrupts_held() as asked:
            said.append(asked())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert said == [False]
