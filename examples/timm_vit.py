"""A vision transformer of timm: statistics over its patch tokens, the class token left alone.

python examples/timm_vit.py [--weights FILE]        (needs the zoo extra)
"""

from pathlib import Path

import torch
import typer

import styleshift


def main(weights: Path | None = None) -> None:
    torch.manual_seed(0)
    # what timm.create_model gives will do as well
    vit = styleshift.backbone("timm:vit_tiny_patch16_224", classes=7, weights=weights).eval()
    batches = [(torch.randn(8, 3, 224, 224) * scale, [name] * 8) for name, scale in (("photo", 1.0), ("cartoon", 1.4))]
    robust = styleshift.fit(vit, batches, at="blocks.2")
    print(f"shifted after {robust.sources.at}; {robust.sources.mean.shape[1] // 2} channels, {robust.sources.domains}")

    unseen = torch.cat([torch.randn(2, 3, 224, 224) * 1.2, torch.randn(2, 3, 224, 224) * 0.1 + 1])
    seen = robust.explain(unseen)
    for score, far, nearest in zip(seen.score.tolist(), seen.far.tolist(), seen.nearest.tolist(), strict=True):
        print(f"score {score:.2f}: {'shifted to' if far else 'near, the nearest is'} {seen.domains[nearest]}")
    with torch.inference_mode():
        changed = (robust(unseen) - vit(unseen)).abs().amax(dim=1) > 1e-4
    assert changed.tolist() == seen.far.tolist()


if __name__ == "__main__":
    typer.run(main)
