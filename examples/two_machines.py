"""Training images on two machines: each measures its own part, and the merged styles are those of one pass over all.

python examples/two_machines.py
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

import styleshift


def measured(model: nn.Module, batches: list[tuple[torch.Tensor, list[str]]], file: Path) -> None:
    """What runs on one machine. The file holds statistics, no images, and is safe to read wherever it comes from."""
    styleshift.sources_of(model, batches, at="layer1").save(file)


def main() -> None:
    torch.manual_seed(0)
    model = styleshift.backbone("smallnet", classes=5).eval()  # the same weights on both
    first = [(torch.randn(20, 3, 32, 32), ["photo", "art"] * 10) for _ in range(3)]
    second = [(torch.randn(20, 3, 32, 32) * 2, ["art", "sketch"] * 10) for _ in range(2)]

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("first.safetensors", "second.safetensors")]
        measured(model, first, files[0])
        measured(model, second, files[1])
        ours, theirs = (styleshift.SourceStyles.load(file) for file in files)

    whole = ours.merged(theirs)
    print(dict(zip(whole.domains, whole.counts.tolist(), strict=True)))
    in_one_pass = styleshift.sources_of(model, first + second, at="layer1")
    torch.testing.assert_close(whole.mean, in_one_pass.mean)
    torch.testing.assert_close(whole.variance, in_one_pass.variance)

    robust = styleshift.ShiftedModel(model, whole, alpha=3.0)
    images = torch.randn(4, 3, 32, 32) * 5
    print(f"{int(robust.explain(images).far.sum())} of {len(images)} are far")


if __name__ == "__main__":
    main()
