"""A training begins, goes on, recognises that it is done, and refuses what is not its own."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from styleshift.backbones.building import backbone
from styleshift.training.fit import train
from styleshift.training.progress import Moment
from styleshift.training.run import DivergedError
from styleshift.training.settings import Settings
from styleshift.training.trained import Trained


def trained(made: Any, folder: Path, settings: Settings, **options: Any) -> nn.Module:
    return train(settings, made.dataset, made.images, made.split, folder, **options)


def weights(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.state_dict())


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(tensor, weights(other)[name]) for name, tensor in weights(one).items())


def interrupt_at(step: int) -> Callable[[Moment], None]:
    def show(moment: Moment) -> None:
        if moment.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    return show


def interrupted(made: Any, folder: Path, settings: Settings, step: int) -> None:
    with pytest.raises(KeyboardInterrupt, match=f"interrupted after step {step} of"):
        trained(made, folder, settings, progress=interrupt_at(step))


def test_training_lowers_the_loss(made: Any, tmp_path: Path) -> None:
    trained(made, tmp_path, replace(made.settings, augment=None, balance=False, epochs=6))
    record = Trained.read(tmp_path)
    assert record is not None
    assert record.history[-1].loss < record.history[0].loss - 0.1


def test_the_same_settings_give_the_same_weights(made: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    one = trained(made, tmp_path / "one", made.settings)
    torch.manual_seed(2)
    assert same(one, trained(made, tmp_path / "other", made.settings))


def test_another_seed_gives_other_weights(made: Any, tmp_path: Path) -> None:
    one = trained(made, tmp_path / "one", replace(made.settings, epochs=1))
    assert not same(one, trained(made, tmp_path / "other", replace(made.settings, epochs=1, seed=1)))


@pytest.mark.parametrize(
    "changes",
    [
        {"augment": "dsu"},
        {"augment": "efdmix", "sb_share": 0.5},
        {"augment": None, "balance": False, "sampling": "oversample", "reweight": "effective"},
        {"pseudo_domains": 3, "choose": "best-validation"},
        {"schedule": "cosine-epoch", "channels_last": False},
    ],
    ids=lambda changes: ",".join(changes),
)
@pytest.mark.parametrize("step", [4, 6])
def test_an_interrupted_training_ends_in_the_weights_of_an_undisturbed_one(
    changes: dict[str, Any], step: int, made: Any, tmp_path: Path
) -> None:
    settings = replace(made.settings, epochs=2, **changes)
    undisturbed = trained(made, tmp_path / "one", settings)
    interrupted(made, tmp_path / "other", settings, step)
    assert same(undisturbed, trained(made, tmp_path / "other", settings))


@pytest.mark.usefixtures("half_precision")
def test_an_interrupted_training_in_half_precision_ends_in_the_same_weights(made: Any, tmp_path: Path) -> None:
    settings = replace(made.settings, epochs=1, precision="bfloat16")
    undisturbed = trained(made, tmp_path / "one", settings)
    interrupted(made, tmp_path / "other", settings, 4)
    assert same(undisturbed, trained(made, tmp_path / "other", settings))


def test_an_interrupted_training_goes_on_from_where_it_was(made: Any, tmp_path: Path) -> None:
    interrupted(made, tmp_path, made.settings, 5)
    steps: list[int] = []
    trained(made, tmp_path, made.settings, progress=lambda moment: steps.append(moment.step))
    assert steps[0] == 6


def test_an_interrupt_while_the_model_is_written_is_not_lost(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Trained.write

    def interrupted_write(self: Trained, folder: Path, model: nn.Module) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        write(self, folder, model)

    monkeypatch.setattr(Trained, "write", interrupted_write)
    with pytest.raises(KeyboardInterrupt, match="at the end of a training"):
        trained(made, tmp_path, replace(made.settings, epochs=1))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "model.safetensors"]


def test_a_finished_training_is_recognised(made: Any, tmp_path: Path) -> None:
    model = trained(made, tmp_path, made.settings)
    steps: list[Moment] = []
    assert same(model, trained(made, tmp_path, made.settings, progress=steps.append))
    assert steps == []


def test_a_clipped_gradient_is_no_longer_than_that(made: Any, tmp_path: Path) -> None:
    """One step of plain gradient descent moves the weights by the learning rate times the clip."""
    how = {"momentum": 0.0, "nesterov": False, "weight_decay": 0.0, "learning_rate": 0.5, "epochs": 1}
    one_step = replace(made.settings, **how, batch_size=10**6, sampling="random")
    still = trained(made, tmp_path / "still", replace(one_step, learning_rate=0.0))
    wide, same_, narrow = (
        trained(made, tmp_path / str(clip), replace(one_step, clip=clip)) for clip in (None, 1e6, 1e-2)
    )

    def way(model: nn.Module) -> float:
        pairs = zip(model.parameters(), still.parameters(), strict=True)
        return sum(float((one - other).detach().double().square().sum()) for one, other in pairs) ** 0.5

    assert same(wide, same_)
    assert way(wide) > 0.5 * 1e-2
    assert way(narrow) == pytest.approx(0.5 * 1e-2, rel=1e-3)


def test_a_finished_training_serves_any_number_of_threads(made: Any, tmp_path: Path) -> None:
    model = trained(made, tmp_path, made.settings)
    assert same(model, trained(made, tmp_path, replace(made.settings, threads=made.settings.threads + 1)))


def test_a_checkpoint_goes_on_with_the_threads_it_had(made: Any, tmp_path: Path) -> None:
    interrupted(made, tmp_path, made.settings, 2)
    with pytest.raises(ValueError, match="belongs to another training: threads is"):
        trained(made, tmp_path, replace(made.settings, threads=made.settings.threads + 1))


def test_a_finished_folder_holds_the_model_alone(made: Any, tmp_path: Path) -> None:
    trained(made, tmp_path, made.settings, checkpoint_seconds=0.0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "model.safetensors"]


def test_drafts_of_a_killed_process_are_cleared_away(made: Any, tmp_path: Path) -> None:
    (tmp_path / ".checkpoint.safetensors.abc").touch()
    trained(made, tmp_path, replace(made.settings, epochs=1))
    assert not (tmp_path / ".checkpoint.safetensors.abc").exists()


def test_a_checkpoint_of_other_settings_is_refused(made: Any, tmp_path: Path) -> None:
    interrupted(made, tmp_path, made.settings, 2)
    with pytest.raises(ValueError, match="belongs to another training: seed is 0 there and 1 here"):
        trained(made, tmp_path, replace(made.settings, seed=1))


def test_a_finished_training_of_other_settings_is_refused(made: Any, tmp_path: Path) -> None:
    trained(made, tmp_path, replace(made.settings, epochs=1))
    with pytest.raises(ValueError, match="belongs to another training: epochs is 1 there and 2 here"):
        trained(made, tmp_path, replace(made.settings, epochs=2))


def test_a_checkpoint_of_other_images_is_refused(made: Any, tmp_path: Path) -> None:
    interrupted(made, tmp_path, made.settings, 2)
    others = replace(made, images=replace(made.images, key="others"))
    with pytest.raises(ValueError, match="the images, labels or split differ"):
        trained(others, tmp_path, made.settings)


def test_a_loss_that_is_no_number_stops_with_step_and_learning_rate(made: Any, tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"loss is (nan|inf) at step \d+ of 18, where the learning rate is \S+e\+"):
        trained(made, tmp_path, replace(made.settings, learning_rate=1e30))


def test_target_labels_change_nothing(made: Any, tmp_path: Path) -> None:
    settings = replace(made.settings, choose="best-validation")
    one = trained(made, tmp_path / "one", settings)
    classes = made.dataset.classes.copy()
    classes[made.split.test] = (classes[made.split.test] + 1) % 3
    others = replace(made, dataset=replace(made.dataset, classes=classes))
    assert same(one, trained(others, tmp_path / "other", settings))


def test_the_best_epoch_by_validation_is_kept(made: Any, tmp_path: Path) -> None:
    trained(made, tmp_path, replace(made.settings, choose="best-validation", epochs=4))
    record = Trained.read(tmp_path)
    assert record is not None
    accuracies = [epoch.validation or 0.0 for epoch in record.history]
    assert accuracies[record.epoch - 1] == max(accuracies)
    assert record.epoch == accuracies.index(max(accuracies)) + 1


def test_choosing_by_validation_needs_validation_images(made: Any, tmp_path: Path) -> None:
    without = replace(made, split=replace(made.split, validation=made.split.validation[:0]))
    with pytest.raises(ValueError, match="best-validation needs validation images"):
        trained(without, tmp_path, replace(made.settings, choose="best-validation"))


def test_the_callers_threads_and_determinism_come_back(made: Any, tmp_path: Path) -> None:
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.get_rng_state()
    trained(made, tmp_path, replace(made.settings, epochs=1, threads=2))
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before[:2]
    assert torch.equal(torch.get_rng_state(), before[2])


def test_no_hook_is_left_on_the_model(made: Any, tmp_path: Path) -> None:
    model = trained(made, tmp_path, made.settings)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not model.training


def test_training_begins_from_the_weights_given(made: Any, tmp_path: Path) -> None:
    save_file(backbone("smallnet", classes=3).state_dict(), tmp_path / "w.safetensors")
    digest = sha256((tmp_path / "w.safetensors").read_bytes()).hexdigest()
    settings = replace(made.settings, weights=digest, learning_rate=0.0, epochs=1)
    model = trained(made, tmp_path / "run", settings, weights=tmp_path / "w.safetensors")
    assert torch.equal(model.get_parameter("fc.weight"), backbone_weight(tmp_path / "w.safetensors"))


def backbone_weight(file: Path) -> Tensor:
    return backbone("smallnet", classes=3, weights=file).get_parameter("fc.weight")


def test_other_weights_than_the_settings_name_are_refused(made: Any, tmp_path: Path) -> None:
    save_file({"w": torch.zeros(1)}, tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=r"begin from weights with sha256 abc….* is weights with sha256"):
        trained(made, tmp_path, replace(made.settings, weights="abc"), weights=tmp_path / "w.safetensors")


def test_a_missing_weights_file_is_not_random_weights(made: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"begin from weights with sha256 abc…, but no weights file was given"):
        trained(made, tmp_path, replace(made.settings, weights="abc"))
