"""MODEL on the command line: what it stands for, and how its images are prepared."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from styleshift.backbones.building import backbone
from styleshift.shifted import ShiftedModel, load
from styleshift.training.trained import FILE, Trained


@dataclass(frozen=True)
class Loaded:
    """A network in eval mode.

    transform: a name in `data.transforms`. folder: where it came from, and where its styles are.
    """

    model: nn.Module
    class_names: tuple[str, ...]
    transform: str
    folder: Path

    def shifted(self, styles: Path | None, at: str | None) -> ShiftedModel | None:
        """The model fitted to its sources: by the file `styles`, else by the one beside it for the layer `at`.

        None where there is no such file and none was asked for.
        """
        layer = at or getattr(self.model, "shift_at", "layer2")
        path = styles or self.folder / f"styles-{layer}.safetensors"
        if path.is_file():
            return load(self.model, path)
        if styles is None and at is None:
            return None
        there = sorted(file.name for file in self.folder.glob("styles-*.safetensors"))
        beside = ", ".join(there) or "none"
        raise FileNotFoundError(f"no styles at {path}; beside the model there are {beside}. See `styleshift fit`")


def loaded(model: str, arch: str | None, classes: str | None, transform: str | None) -> Loaded:
    """What MODEL names: a folder or file that a training wrote, or with `arch` a file of weights.

    transform: how images are prepared; a training's own where it is left out, `tsb` (224 pixels) for a file of weights.
    """
    path = Path(model)
    if arch is not None:
        if classes is None:
            raise ValueError("--arch needs --classes: how many classes there are, or their names as in cat,dog,horse")
        names = class_names(classes)
        network = backbone(arch, classes=len(names), weights=path)
        return Loaded(network.eval(), names, transform or "tsb", path.parent)
    folder = path.parent if path.name == FILE else path
    trained = Trained.read(folder)
    if trained is None:
        raise FileNotFoundError(
            f"{model} is neither a folder nor a {FILE} that a training wrote. A weights file needs --arch and --classes"
        )
    return Loaded(trained.model(folder), trained.class_names, transform or trained.settings.transform, folder)


def class_names(classes: str) -> tuple[str, ...]:
    """`cat,dog,horse` as names, `7` as class 0 to class 6."""
    if classes.isdigit():
        return tuple(f"class {number}" for number in range(int(classes)))
    return tuple(name.strip() for name in classes.split(","))
