"""One training at one moment."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from styleshift.training.checkpoint import Tree
from styleshift.training.run import Run
from styleshift.training.settings import Settings
from styleshift.training.source_data import SourceData


def run_of(made: Any, **changes: Any) -> Run:
    return Run(replace(made.settings, **changes), SourceData.of(made.dataset, made.images, made.split), None)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # 3 epochs of 6 steps; steps 0, 5, 6, 9
        ("cosine-step", [1.0, (1 + math.cos(math.pi * 5 / 18)) / 2, (1 + math.cos(math.pi / 3)) / 2, 0.5]),
        ("cosine-epoch", [1.0, 1.0, 0.75, 0.75]),
    ],
)
def test_the_learning_rate_falls_along_a_cosine(schedule: str, expected: list[float], made: Any) -> None:
    run = run_of(made, schedule=schedule, learning_rate=1.0)
    rates = []
    for run.step in (0, 5, 6, 9):
        rates.append(run.learning_rate)
    assert rates == pytest.approx(expected)


def test_the_rate_of_a_step_is_the_optimizers(made: Any) -> None:
    run = run_of(made, augment=None, balance=False)
    run.take_step()
    expected = run.learning_rate
    run.take_step()
    assert run.optimizer.param_groups[0]["lr"] == expected


def test_a_step_is_that_of_plain_torch(made: Any) -> None:
    run = run_of(made, augment=None, balance=False, channels_last=False)
    other = run_of(made, augment=None, balance=False, channels_last=False)
    other.model.load_state_dict(run.model.state_dict())
    run.take_step()
    run.take_step()
    optimizer = torch.optim.SGD(other.model.parameters(), lr=0.0, momentum=0.9, nesterov=True, weight_decay=5e-4)
    other.model.train()
    for step in range(2):
        generator = augmentation(made.settings, step)
        batch = other.data.train.training_batch(run.batches[step], other.transform, generator)
        optimizer.param_groups[0]["lr"] = made.settings.learning_rate * (1 + math.cos(math.pi * step / 18)) / 2
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(other.model(batch.images), batch.classes).backward()
        optimizer.step()
    torch.testing.assert_close(dict(run.model.state_dict()), dict(other.model.state_dict()))


def augmentation(settings: Settings, step: int) -> torch.Generator:
    from styleshift.training.randomness import stream

    return stream(settings.seed, "augmentation", step)


def test_sb_may_act_in_its_share_of_batches(made: Any) -> None:
    run = run_of(made, sb_share=0.25)
    may = []
    for run.step in range(400):
        may.append(run._may_balance())
    assert 0.18 < sum(may) / 400 < 0.32


def test_without_a_share_no_sample_is_moved(made: Any) -> None:
    run = run_of(made, sb_share=0.0, p=1.0)
    run.take_step()
    assert run.balancing is not None
    assert run.balancing.moved == 0


def test_with_balancing_samples_are_moved(made: Any) -> None:
    run = run_of(made, p=1.0)
    run.take_step()
    assert run.balancing is not None
    assert run.balancing.moved > 0


def test_pseudo_domains_are_found_anew_every_epoch(made: Any) -> None:
    run = run_of(made, pseudo_domains=2)
    run.take_step()
    assert set(run.domains.tolist()) == {0, 1}
    first = run.domains.clone()
    run.domains = torch.zeros_like(first)
    while run.step <= run.steps_per_epoch:
        run.take_step()
    assert set(run.domains.tolist()) == {0, 1}


def test_one_source_is_balanced_by_moving_nothing(made: Any) -> None:
    split = made.split
    first = split.train[made.dataset.domains[split.train] == 0]
    alone = replace(split, train=first, validation=split.validation[:0])
    run = Run(replace(made.settings, p=1.0), SourceData.of(made.dataset, made.images, alone), None)
    run.take_step()
    assert run.balancing is not None
    assert run.balancing.moved == 0


def test_a_restored_run_is_the_run(made: Any) -> None:
    run, other = run_of(made), run_of(made, seed=0)
    for _ in range(8):
        run.take_step()
    other.restore(run.tree())
    assert flat(other.tree()) == flat(run.tree())


def test_momentum_keeps_the_memory_format_of_its_parameter(made: Any) -> None:
    run, other = run_of(made), run_of(made)
    run.take_step()
    tree = run.tree()
    for state in tree["optimizer"].values():
        state["momentum_buffer"] = state["momentum_buffer"].contiguous()
    other.restore(tree)
    for parameter, state in other.optimizer.state.items():
        assert state["momentum_buffer"].stride() == parameter.stride()


def flat(tree: Tree) -> dict[str, Any]:
    """By path; tensors as lists."""
    found: dict[str, Any] = {}
    for name, below in tree.items():
        if isinstance(below, dict):
            found |= {f"{name}/{path}": value for path, value in flat(below).items()}
        else:
            found[name] = below.tolist() if isinstance(below, torch.Tensor) else below
    return found


def test_reweighting_follows_the_training_images(made: Any) -> None:
    weights = run_of(made, reweight="effective", augment=None, balance=False).class_weights
    assert weights is not None
    assert weights.tolist() == pytest.approx([1.0, 1.0, 1.0])
