"""Streams repeat, differ by purpose, and the caller's own randomness stays as it was."""

import random

import numpy as np
import torch

from styleshift.training.randomness import global_state, own_randomness, restore_global_state, stream


def drawn() -> tuple[float, float, float]:
    return float(torch.rand(())), float(np.random.rand()), random.random()  # noqa: NPY002  the global one is meant


def test_a_stream_is_the_same_for_the_same_purpose_and_moment() -> None:
    assert torch.equal(torch.rand(4, generator=stream(0, "order", 3)), torch.rand(4, generator=stream(0, "order", 3)))


def test_a_stream_differs_by_seed_purpose_and_moment() -> None:
    streams = stream(0, "a", 0), stream(1, "a", 0), stream(0, "b", 0), stream(0, "a", 1)
    assert len({float(torch.rand((), generator=generator)) for generator in streams}) == 4


def test_own_randomness_repeats() -> None:
    with own_randomness(1):
        once = drawn()
    with own_randomness(1):
        assert drawn() == once


def test_own_randomness_leaves_the_callers_as_it_was() -> None:
    before = global_state()
    expected = drawn()
    restore_global_state(before)
    with own_randomness(1):
        drawn()
    assert drawn() == expected


def test_a_state_between_two_normal_draws_comes_back() -> None:
    random.gauss(0, 1)
    np.random.standard_normal()  # noqa: NPY002
    state = global_state()
    expected = random.gauss(0, 1), float(np.random.standard_normal())  # noqa: NPY002
    restore_global_state(state)
    assert (random.gauss(0, 1), float(np.random.standard_normal())) == expected  # noqa: NPY002
