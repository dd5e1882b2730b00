"""No domain labels: k-means in style space finds pseudo-domains, and the shift goes to the nearest of them.

python examples/without_labels.py
"""

from collections import Counter

import torch

import styleshift

LOOKS = {"bright": (0.5, 1.5), "dark": (0.5, -1.5), "contrasty": (2.0, 0.0)}  # contrast and light


def main() -> None:
    torch.manual_seed(0)
    model = styleshift.backbone("smallnet", classes=5).eval()
    names = list(LOOKS) * 40
    contrast, light = torch.tensor([LOOKS[name] for name in names]).T[..., None, None, None]
    images = torch.randn(len(names), 3, 32, 32) * contrast + light

    robust = styleshift.fit(model, images.split(30), at="layer1", clusters=3, alpha=2.0)
    found = robust.explain(images).nearest.tolist()
    for cluster, name in enumerate(robust.sources.domains):
        members = Counter(look for look, nearest in zip(names, found, strict=True) if nearest == cluster)
        print(f"{name}: {robust.sources.counts[cluster]} images, {dict(members)}")

    unseen = torch.randn(4, 3, 32, 32) * 0.1 + torch.tensor([0.0, 3.0, -3.0, 6.0])[:, None, None, None]
    seen = robust.explain(unseen)
    for score, far, nearest in zip(seen.score.tolist(), seen.far.tolist(), seen.nearest.tolist(), strict=True):
        print(f"score {score:.1f}: {'shifted to' if far else 'near'} {seen.domains[nearest]}")


if __name__ == "__main__":
    main()
