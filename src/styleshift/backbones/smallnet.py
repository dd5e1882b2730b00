"""A very small network with the places of a ResNet, for trying things out: 32-pixel images, 25 thousand parameters.

`conv1`, `maxpool` and three blocks `layer1`-`layer3` stand where the paper's ResNet-18 has them, so every method and
every recipe runs on it in seconds. MixStyle and EFDMix leave its last block alone, as they leave a ResNet's: the head
reads channel means, and these are what they mix.
"""

from typing import ClassVar

from torch import Tensor, nn


class SmallNet(nn.Module):
    """Three convolution blocks and a linear head.

    classes: how many classes the head tells apart.
    """

    points: ClassVar[dict[str, tuple[str, ...]]] = {
        "mixstyle": ("layer1", "layer2"),
        "efdmix": ("layer1", "layer2"),
        "dsu": ("conv1", "maxpool", "layer1", "layer2", "layer3"),
    }
    shift_at: ClassVar[str] = "layer2"

    def __init__(self, classes: int = 7) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(2)
        self.layer1 = _block(16, 16)
        self.layer2 = _block(16, 32, stride=2)
        self.layer3 = _block(32, 64, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits `[B, classes]` of images `[B, 3, H, W]`."""
        features = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        features = self.layer3(self.layer2(self.layer1(features)))
        logits: Tensor = self.fc(self.avgpool(features).flatten(1))
        return logits


def _block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
