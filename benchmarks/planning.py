"""What style balancing adds to a training step: measuring styles and planning who moves, in process CPU time.

`scripts/bench planning`: a batch of 128 with 3 domains and 7 classes, beside a ResNet-18 step at 112 pixels in the
cpu scale's fastest form (bfloat16 autocast, channels_last). Both in turns in one process; medians are compared.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import convert_conv2d_weight_memory_format

import styleshift
from benchmarks.layers import Comparison, medians
from styleshift.style.balancing import planned_moves
from styleshift.style.statistics import style_of

SAMPLES, DOMAINS, CLASSES = 128, 3, 7


def compare(rounds: int, side: int = 112) -> list[Comparison]:
    """Planning at each of the three points, beside a whole step."""
    draws = torch.Generator().manual_seed(0)
    classes = torch.randint(CLASSES, (SAMPLES,), generator=draws)
    domains = torch.randint(DOMAINS, (SAMPLES,), generator=draws)
    images = torch.randn(SAMPLES, 3, side, side, generator=draws).contiguous(memory_format=torch.channels_last)
    step = training_step(images, classes)
    comparisons = []
    for name, channels, places in (("layer1", 64, side // 4), ("layer2", 128, side // 8), ("layer3", 256, side // 16)):
        maps = torch.randn(SAMPLES, channels, places, places, generator=draws).bfloat16()
        features = maps.contiguous(memory_format=torch.channels_last)

        def plan(features: Tensor = features) -> None:
            planned_moves(classes, domains, style_of(features).phi, DOMAINS)

        ours, whole = medians([plan, step], rounds)
        comparisons.append(Comparison(f"plan, {name}", "training step", ours, whole))
    return comparisons


def training_step(images: Tensor, classes: Tensor) -> Callable[[], None]:
    """One step of the cpu scale, but for its data."""
    model = styleshift.backbone("resnet18", classes=CLASSES)
    convert_conv2d_weight_memory_format(model, torch.channels_last)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 0.005, momentum=0.9, nesterov=True, weight_decay=5e-4, fused=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = cross_entropy(model(images).float(), classes)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def seconds_of(work: Callable[[], object]) -> float:
    """Wall clock of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
