"""Does style shifting help on real sketches? ResNet-18 trained on PACS paintings, cartoons and photos.

python examples/pacs_sketch.py results/core/pacs-sketch.json --seeds 3        (about 5 minutes a seed on 2 cores)
"""

import json
from collections.abc import Iterator
from pathlib import Path

import torch
import typer
from torch import Tensor, nn

import styleshift
from styleshift.data.cache import decoded
from styleshift.data.protocols import leave_one_domain_out
from styleshift.data.roots import data_root, dataset
from styleshift.data.transforms import Light

torch.set_num_threads(2)
pacs, view = dataset("pacs"), Light()
images, classes, domains = decoded(pacs, view.cache_size), torch.tensor(pacs.classes), torch.tensor(pacs.domains)
split = leave_one_domain_out(pacs, "sketch", split="official")
train, test = torch.tensor(split.train), torch.tensor(split.test)


def trained(seed: int, epochs: int) -> nn.Module:
    torch.manual_seed(seed)
    model = styleshift.backbone("resnet18", classes=7, weights=data_root() / "weights/resnet18_imagenet.safetensors")
    torch.nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
    styler = styleshift.StyleTraining(model, augment="mixstyle", balance=False, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    whole = len(train) // 128 * 128
    order = torch.cat([train[torch.randperm(len(train), generator=generator)[:whole]] for _ in range(epochs)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(order) // 128)
    for step, batch in enumerate(order.split(128)):
        with styler.batch(classes[batch], domains[batch]), torch.autocast("cpu", torch.bfloat16):
            logits = model(view.train(images.take(batch), generator))
        loss = nn.functional.cross_entropy(logits.float(), classes[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(f"\rseed {seed}, step {step + 1} of {len(order) // 128}, loss {loss:.2f} ", end="", flush=True)
    styler.remove()
    model.eval()
    return model


def batches(indices: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    return ((view.test(images.take(some)), classes[some], domains[some]) for some in indices.split(250))


@torch.inference_mode()
def percent(model: nn.Module) -> dict[str, float]:
    """Accuracy on sketches, plain and shifted, and the share of sketches that is shifted."""
    measured = {"plain": share(model(x).argmax(1) == y for x, y, _ in batches(test))}
    for at, alpha in [("layer2", 3), ("layer2", 4), ("layer4", 3)]:
        robust = styleshift.fit(model, batches(train), at=at, alpha=alpha)
        measured[f"{at}, alpha {alpha}"] = share(robust(x).argmax(1) == y for x, y, _ in batches(test))
        measured[f"{at}, alpha {alpha}: shifted"] = share(robust.explain(x).far for x, _, _ in batches(test))
    return measured


def share(answers: Iterator[Tensor]) -> float:
    return round(torch.cat(list(answers)).double().mean().item() * 100, 2)


def main(out: Path, seeds: int = 3, epochs: int = 4) -> None:
    runs = []
    for seed in range(seeds):
        model = trained(seed, epochs)
        # not around the training too: autocast keeps its copies of the weights until the outermost block ends
        with torch.autocast("cpu", torch.bfloat16):
            runs.append(percent(model))
        print(runs[-1], flush=True)
    mean = {name: round(sum(run[name] for run in runs) / seeds, 2) for name in runs[0]}
    command = f"python examples/pacs_sketch.py {out} --seeds {seeds} --epochs {epochs}"
    found = {"command": command, "percent, mean over seeds": mean, "percent, seed by seed": runs}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
