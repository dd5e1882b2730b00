"""What every test-time method gives: a model that is called like the one it was made from, and can be reset.

    Adapted    images -> logits; `reset()` forgets everything that was seen
    Sees       what a method looks at besides the image that it answers for, and what it changes
    Method     what a file of `styleshift.adaptation` offers
    body_of    a model's twin with parameters of its own over the same memory

The user's model stays as it is: a method works on a body, and changes only what it has made the body's own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from styleshift.sources import SourceStyles, expect_images
from styleshift.twins import twin


@dataclass(frozen=True)
class Sees:
    """What an answer may depend on besides the image itself and the model, and whether weights change.

    source_styles: the source domains' mean styles; where a shift goes to `sampled` ones, those of single images, too.
    source_images: images of the sources, without labels.
    other_images: the other images of its batch. earlier_batches: those that came before.
    updates_weights: parameters move, so it needs gradients.
    """

    source_styles: bool = False
    source_images: bool = False
    other_images: bool = False
    earlier_batches: bool = False
    updates_weights: bool = False


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass whose fields are its settings."""

    sees: ClassVar[Sees]

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> "Adapted":
        """`model` with this method around it; `model` itself stays as it is.

        styles: the sources' styles, for methods that see them. images: batches of source images, for those.
        """


class Adapted(nn.Module):
    """A model with a test-time method around it: called like the model, on `[B, C, H, W]`, B at least 1.

    body: what the method works on. sees: what this one looks at.
    It has one mode, whatever `train()` and `eval()` ask for: which parts of the body use a batch's statistics is the
    method's to say. No gradient leaves it.
    """

    def __init__(self, body: nn.Module, sees: Sees) -> None:
        super().__init__()
        self.body = body.eval()
        self.sees = sees
        self.training = False

    def forward(self, images: Tensor) -> Tensor:
        """Logits `[B, K]`."""
        expect_images(images)
        if not len(images):
            raise ValueError("a test-time method answers for at least one image; got a batch of none")
        # what is kept between batches has to serve in any mode, so nothing of it is made in inference mode
        with torch.inference_mode(False), torch.no_grad():
            return self._answer(images.clone() if images.is_inference() else images)

    def reset(self) -> None:
        """Forget everything that was seen: answers are, bit by bit, those of a model just wrapped."""

    def train(self, mode: bool = True) -> "Adapted":
        """Nothing changes: the mode belongs to the method."""
        return self

    def _answer(self, images: Tensor) -> Tensor:
        return self._logits(images)

    def _logits(self, images: Tensor) -> Tensor:
        """The body's, which have to be one row of numbers an image."""
        logits = self.body(images)
        if not isinstance(logits, Tensor) or logits.ndim != 2:
            given = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(f"a test-time method needs a model that gives logits [B, K]; this one gives {given}")
        return logits


def body_of(model: nn.Module) -> nn.Module:
    """A twin of `model` in eval mode whose parameters and buffers lie in the same memory and belong to it alone.

    None of its parameters asks for a gradient, and whether one does later says nothing to `model`.
    """
    body = twin(model).eval()
    own: dict[int, nn.Parameter] = {}
    for module in body.modules():
        module.__dict__["_parameters"] = {
            name: None if parameter is None else own.setdefault(id(parameter), _unlearned(parameter))
            for name, parameter in module._parameters.items()
        }
        module.__dict__["_buffers"] = dict(module._buffers)
    return body


def own_parameter(module: nn.Module, name: str) -> nn.Parameter:
    """A parameter of a body in memory of its own, ready to learn."""
    parameter = nn.Parameter(getattr(module, name).detach().clone(), requires_grad=True)
    module._parameters[name] = parameter
    return parameter


def _unlearned(parameter: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(parameter.detach(), requires_grad=False)
