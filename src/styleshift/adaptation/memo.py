"""MEMO: one image's views made to agree and be sure, before it is answered for (Zhang et al., NeurIPS 2022).

    views    random crops and flips of one image

Every image is a world of its own: the weights learn one step from its views, answer for it, and are put back. BatchNorm
mixes the statistics of what passes, with weight 1 / (N + 1), into those of the sources.

Reading: the released code makes views with AugMix on pictures before they are normalised; a model's input is normalised
already, so views here are random resized crops and flips, which the authors' ablation uses.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from styleshift.adaptation.entropy import marginal_entropy
from styleshift.adaptation.learning import Learner, expect_rates
from styleshift.adaptation.norms import mix_statistics
from styleshift.adaptation.wrapping import Adapted, Sees, body_of, own_parameter
from styleshift.sources import SourceStyles

_AREA = (0.08, 1.0)  # of a crop, in the image's; it and the range of the sides' ratio are the usual ones
_RATIO = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class MEMO:
    """Lowers the entropy of the mean prediction over an image's views, all weights learning, for every image anew.

    learning_rate: of SGD. The paper: 0.00025, for ImageNet's ResNet-50; the authors' code for CIFAR's ResNet-26 has
        0.005.
    steps: an image. The paper: 1.
    views: an image. The paper: 64 for ImageNet, 32 for CIFAR.
    prior: how many images the sources' BatchNorm statistics count as beside the one at hand. The paper: 16.
    seed: of crops and flips; every image gets the same ones.
    """

    learning_rate: float = 2.5e-4
    steps: int = 1
    views: int = 64
    prior: float = 16.0
    seed: int = 0

    sees: ClassVar[Sees] = Sees(updates_weights=True)

    def __post_init__(self) -> None:
        expect_rates(self.learning_rate)
        if self.steps < 1 or self.views < 1:
            raise ValueError(f"steps and views are at least 1; got {self.steps} and {self.views}")
        if not self.prior >= 0:
            raise ValueError(f"prior is a number of images, at least 0; got {self.prior}")

    def wrap(
        self, model: nn.Module, *, styles: SourceStyles | None = None, images: Iterable[Tensor] | None = None
    ) -> Adapted:
        """See `wrapping.Method`; neither styles nor images are looked at."""
        body = body_of(model)
        mix_statistics(_with_statistics(body), 1 / (self.prior + 1), self.prior)
        parameters = own_parameters(body)
        return _Episodes(body, self, Learner(parameters, partial(torch.optim.SGD, lr=self.learning_rate)))


def own_parameters(body: nn.Module) -> list[nn.Parameter]:
    """Every parameter of a body, in memory of its own and ready to learn; one that is shared stays shared."""
    own: dict[int, nn.Parameter] = {}
    for module in body.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and parameter.is_floating_point():
                module._parameters[name] = own.setdefault(id(parameter), own_parameter(module, name))
    if not own:
        raise ValueError(f"{type(body).__name__} has no parameter that could learn")
    return list(own.values())


def _with_statistics(body: nn.Module) -> list[nn.Module]:
    kind = nn.modules.batchnorm._BatchNorm
    return [module for module in body.modules() if isinstance(module, kind) and module.running_mean is not None]


class _Episodes(Adapted):
    def __init__(self, body: nn.Module, method: MEMO, learner: Learner) -> None:
        super().__init__(body, method.sees)
        self.method = method
        self.learner = learner

    def reset(self) -> None:
        self.learner.put_back()

    def _answer(self, images: Tensor) -> Tensor:
        return torch.cat([self._answer_for(image) for image in torch.split(images, 1)])

    def _answer_for(self, image: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(self.method.seed)
        try:
            for _ in range(self.method.steps):
                seen = views(image, self.method.views, generator)
                with torch.enable_grad():
                    loss = marginal_entropy(self._logits(seen))
                self.learner.step(loss)
            return self._logits(image)
        finally:
            self.learner.put_back()


def views(image: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Random resized crops of one image `[1, C, H, W]`, every other one on average mirrored: `[count, C, H, W]`."""
    return torch.cat([_view(image, torch.rand(5, generator=generator).tolist()) for _ in range(count)])


def _view(image: Tensor, draws: list[float]) -> Tensor:
    size = tuple(image.shape[2:])
    share = _AREA[0] + draws[0] * (_AREA[1] - _AREA[0])
    ratio = _RATIO[0] * (_RATIO[1] / _RATIO[0]) ** draws[1]
    height, width = _side(size[0], (share / ratio) ** 0.5), _side(size[1], (share * ratio) ** 0.5)
    top, left = int(draws[2] * (size[0] - height + 1)), int(draws[3] * (size[1] - width + 1))
    crop = image[:, :, top : top + height, left : left + width]
    view = F.interpolate(crop, size=size, mode="bilinear", align_corners=False)
    return view.flip(3) if draws[4] < 0.5 else view


def _side(length: int, share: float) -> int:
    return min(max(round(length * share), 1), length)
