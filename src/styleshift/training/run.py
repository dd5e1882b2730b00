"""One training at one moment: everything that a step changes, and therefore everything that a checkpoint holds."""

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import convert_conv2d_weight_memory_format

from styleshift import algorithms, named
from styleshift.attaching import features_at
from styleshift.backbones.building import backbone
from styleshift.data.batch import Batch
from styleshift.style.clustering import pseudo_domains
from styleshift.style.statistics import style_of
from styleshift.stylizing import StyleTraining
from styleshift.training.choosing import Chosen
from styleshift.training.evaluate import accuracy_of, autocast
from styleshift.training.randomness import global_state, restore_global_state, stream
from styleshift.training.sampling import effective_number_weights, epoch_batches, steps_per_epoch
from styleshift.training.settings import Settings
from styleshift.training.source_data import SourceData, transform_of
from styleshift.training.trained import EpochFacts, Trained


class DivergedError(ValueError):
    """The loss is no number any more."""


@runtime_checkable
class Algorithm(Protocol):
    """What a file of `styleshift.algorithms` offers: how to learn from a batch."""

    def loss(self, model: nn.Module, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """The scalar to minimise."""


class Run:
    """A training that can take one step at a time, be written down between any two, and go on from there.

    weights: the file with the backbone's first weights, or None for random ones.
    """

    def __init__(self, settings: Settings, data: SourceData, weights: Path | None) -> None:
        self.settings, self.data = settings, data
        self.transform = transform_of(settings)
        self.algorithm = _algorithm(settings)
        self.class_weights = _class_weights(settings, data)
        self.model = backbone(settings.backbone, classes=len(data.class_names), weights=weights)
        if settings.channels_last:
            convert_conv2d_weight_memory_format(self.model, torch.channels_last)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(),
            lr=settings.learning_rate,
            momentum=settings.momentum,
            nesterov=settings.nesterov,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.styler = _styler(self.model, settings, data)
        self.balancing = self.styler.balancing if self.styler else None
        self.steps_per_epoch = steps_per_epoch(data.train.classes, settings.batch_size, settings.sampling)
        self.steps = self.steps_per_epoch * settings.epochs
        self.step = 0
        self.loss, self.loss_sum = math.nan, 0.0
        self.images, self.seconds = 0, 0.0
        self.history: list[EpochFacts] = []
        self.chosen = Chosen()
        self.domains = data.train.domains
        self.batches = torch.empty(0, 0, dtype=torch.int64)

    @property
    def epoch(self) -> int:
        """The epoch that the next step belongs to, from 0."""
        return self.step // self.steps_per_epoch

    @property
    def learning_rate(self) -> float:
        """Of the next step."""
        done = self.step / self.steps if self.settings.schedule == "cosine-step" else self.epoch / self.settings.epochs
        return self.settings.learning_rate * (1 + math.cos(math.pi * done)) / 2

    def take_step(self) -> None:
        """Learn from the next batch; at the end of an epoch also note how it went."""
        began = time.monotonic()
        place = self.step % self.steps_per_epoch
        if place == 0:
            self._begin_epoch()
        self._learn(self.batches[place])
        self.step += 1
        if place == self.steps_per_epoch - 1:
            self._end_epoch()
        self.seconds += time.monotonic() - began

    def tree(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return {
            "step": self.step,
            "loss_sum": self.loss_sum,
            "images": self.images,
            "seconds": self.seconds,
            "history": [vars(epoch) for epoch in self.history],
            "chosen": vars(self.chosen),
            "domains": self.domains,
            "model": dict(self.model.state_dict()),
            "optimizer": _optimizer_state(self.optimizer),
            "styler": self.styler.state_dict() if self.styler else {},
            "global randomness": global_state(),
        }

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Be where the training was when `tree` was taken."""
        self.step, self.loss_sum = tree["step"], tree["loss_sum"]
        self.images, self.seconds = tree["images"], tree["seconds"]
        self.history = [EpochFacts(**epoch) for epoch in tree["history"]]
        self.chosen = Chosen(**tree["chosen"])
        self.domains = tree["domains"]
        self.model.load_state_dict(tree["model"])
        _restore_optimizer(self.optimizer, tree["optimizer"])
        if self.styler:
            self.styler.load_state_dict(tree["styler"])
        restore_global_state(tree["global randomness"])
        self.batches = self._epoch_batches()

    def finished(self) -> Trained:
        """Take the chosen weights, and say what was done. After the last step."""
        if self.settings.choose == "best-validation":
            self.model.load_state_dict(self.chosen.weights)
        return Trained(
            settings=self.settings,
            data=self.data.fingerprint,
            class_names=self.data.class_names,
            domain_names=self.data.domain_names,
            history=tuple(self.history),
            epoch=self.chosen.epoch if self.settings.choose == "best-validation" else self.settings.epochs,
            images=self.images,
            seconds=self.seconds,
        )

    def close(self) -> None:
        """Leave the model without hooks."""
        if self.styler:
            self.styler.remove()

    def _begin_epoch(self) -> None:
        self.loss_sum = 0.0
        self.batches = self._epoch_batches()
        if self.settings.pseudo_domains is not None and self.settings.balance:
            self.domains = self._pseudo_domains(self.settings.pseudo_domains)

    def _epoch_batches(self) -> Tensor:
        settings = self.settings
        generator = stream(settings.seed, "order", self.epoch)
        return epoch_batches(self.data.train.classes, settings.batch_size, settings.sampling, generator)

    def _learn(self, rows: Tensor) -> None:
        batch = self._batch(rows)
        self.model.train()
        self.optimizer.param_groups[0]["lr"] = self.learning_rate
        with self._styled(batch, rows), autocast(self.settings.precision):
            loss = self.algorithm.loss(self.model, batch, self.class_weights)
        self.loss = loss.item()
        if not math.isfinite(self.loss):
            raise DivergedError(
                f"training has diverged: the loss is {self.loss} at step {self.step + 1} of {self.steps}, where the "
                f"learning rate is {self.learning_rate:g}. Try less than learning_rate={self.settings.learning_rate:g}"
            )
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.loss_sum += self.loss
        self.images += len(rows)

    def _batch(self, rows: Tensor) -> Batch:
        generator = stream(self.settings.seed, "augmentation", self.step)
        batch = self.data.train.training_batch(rows, self.transform, generator)
        if self.settings.channels_last:
            return batch._replace(images=batch.images.contiguous(memory_format=torch.channels_last))
        return batch

    def _styled(self, batch: Batch, rows: Tensor) -> AbstractContextManager[object]:
        if self.styler is None:
            return nullcontext()
        self.styler.balancing = self.balancing if self._may_balance() else None
        return self.styler.batch(batch.classes, self.domains[rows])

    def _may_balance(self) -> bool:
        chance = torch.rand((), generator=stream(self.settings.seed, "balancing", self.step))
        return float(chance) < self.settings.sb_share

    def _end_epoch(self) -> None:
        epoch = self.step // self.steps_per_epoch
        accuracy = None
        if self.settings.choose == "best-validation":
            accuracy = self._validation_accuracy()
            self.chosen.consider(epoch, accuracy, self.model.state_dict())
        self.history.append(EpochFacts(self.loss_sum / self.steps_per_epoch, accuracy))

    def _validation_accuracy(self) -> float:
        batches = self.data.validation.test_batches(self.transform, self.settings.batch_size)
        self.model.eval()
        return accuracy_of(self.model, batches, self.settings.precision)

    def _pseudo_domains(self, clusters: int) -> Tensor:
        """Each training image's cluster of style, as the model sees it now (paper: results without domain labels)."""
        layer = self.settings.shift_at or getattr(self.model, "shift_at", None)
        if layer is None:
            raise ValueError(f"pseudo_domains are clusters at a layer; say with shift_at at which of {self.model}")
        self.model.eval()
        with torch.inference_mode(), autocast(self.settings.precision):
            phi = [
                style_of(features_at(self.model, [layer], batch.images)[layer]).phi
                for batch in self.data.train.test_batches(self.transform, self.settings.batch_size)
            ]
        seed = stream(self.settings.seed, "clusters", self.epoch).initial_seed()
        return pseudo_domains(torch.cat(phi), clusters, seed)


def _algorithm(settings: Settings) -> Algorithm:
    algorithm = named.build(algorithms, settings.algorithm)
    assert isinstance(algorithm, Algorithm), f"{settings.algorithm} has no loss(model, batch, weights)"
    return algorithm


def _class_weights(settings: Settings, data: SourceData) -> Tensor | None:
    if settings.reweight is None:
        return None
    return effective_number_weights(torch.bincount(data.train.classes, minlength=len(data.class_names)))


def _styler(model: nn.Module, settings: Settings, data: SourceData) -> StyleTraining | None:
    if settings.augment is None and not settings.balance:
        return None
    return StyleTraining(
        model,
        at=settings.points,
        augment=settings.augment,
        balance=settings.balance,
        p=settings.p,
        n_domains=settings.pseudo_domains or len(data.domain_names),
        selection=settings.selection,
        seed=stream(settings.seed, "style").initial_seed(),
    )


def _optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, dict[str, Tensor]]:
    """What the optimizer remembers of each parameter, by the parameter's place."""
    states = optimizer.state_dict()["state"]
    return {
        str(place): {name: value for name, value in state.items() if value is not None}
        for place, state in states.items()
    }


def _restore_optimizer(optimizer: torch.optim.Optimizer, states: Mapping[str, Mapping[str, Tensor]]) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for place, state in states.items():
        parameter = parameters[int(place)]
        # in the parameter's memory format: a kernel rounds its last, unvectorised elements in another way than the rest
        optimizer.state[parameter] = {
            name: torch.empty_like(parameter).copy_(value) if value.shape == parameter.shape else value
            for name, value in state.items()
        }
