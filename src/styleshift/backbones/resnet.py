"""ResNet-18 and ResNet-50 (He et al., 2016): the backbones of the paper's classification experiments.

Key names are torchvision's, so published ImageNet weights load as they are.

Reading: a "residual block" of the paper is one of the four stages `layer1` to `layer4`; DSU's six points are the
outputs of `conv1` (before `bn1`), `maxpool` and the four stages.
"""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

_STAGES = ("layer1", "layer2", "layer3")


class ResNet(nn.Module):
    """A residual network for images `[B, 3, H, W]`, its weights at their random initialisation.

    variant: "18" or "50", the number of layers with weights.
    classes: how many classes the head tells apart.
    """

    variants: ClassVar[tuple[str, ...]] = ("18", "50")
    points: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mixstyle": _STAGES,
        "efdmix": _STAGES,
        "dsu": ("conv1", "maxpool", *_STAGES, "layer4"),
    }
    shift_at: ClassVar[str] = "layer2"

    def __init__(self, variant: str = "18", classes: int = 1000) -> None:
        super().__init__()
        if variant not in _BLOCKS:
            raise ValueError(f"A ResNet's variant needs to be one of {', '.join(_BLOCKS)}; got {variant!r}.")
        block, counts = _BLOCKS[variant]
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = _stage(block, 64, 64, counts[0], stride=1)
        self.layer2 = _stage(block, 64 * block.expansion, 128, counts[1], stride=2)
        self.layer3 = _stage(block, 128 * block.expansion, 256, counts[2], stride=2)
        self.layer4 = _stage(block, 256 * block.expansion, 512, counts[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits `[B, classes]`."""
        features = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        features = self.layer4(self.layer3(self.layer2(self.layer1(features))))
        logits: Tensor = self.fc(self.avgpool(features).flatten(1))
        return logits


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, features: Tensor) -> Tensor:
        """The block's feature maps."""
        shortcut = features if self.downsample is None else self.downsample(features)
        features = self.relu(self.bn1(self.conv1(features)))
        features = self.bn2(self.conv2(features))
        return _joined(features, shortcut, self.relu)


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, beside a shortcut; the 3x3 one has the stride."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * self.expansion, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, features: Tensor) -> Tensor:
        """The block's feature maps."""
        shortcut = features if self.downsample is None else self.downsample(features)
        features = self.relu(self.bn1(self.conv1(features)))
        features = self.relu(self.bn2(self.conv2(features)))
        features = self.bn3(self.conv3(features))
        return _joined(features, shortcut, self.relu)


_BLOCKS: Mapping[str, tuple[type[BasicBlock] | type[Bottleneck], tuple[int, int, int, int]]] = {
    "18": (BasicBlock, (2, 2, 2, 2)),
    "50": (Bottleneck, (3, 4, 6, 3)),
}


def _joined(features: Tensor, shortcut: Tensor, relu: nn.Module) -> Tensor:
    joined: Tensor = relu(features.add_(shortcut))
    return joined


def _stage(
    block: type[BasicBlock] | type[Bottleneck], inputs: int, width: int, count: int, stride: int
) -> nn.Sequential:
    outputs = width * block.expansion
    downsample = None
    if stride != 1 or inputs != outputs:
        downsample = nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
        )
    first = block(inputs, width, stride, downsample)
    return nn.Sequential(first, *(block(outputs, width, stride=1, downsample=None) for _ in range(count - 1)))
