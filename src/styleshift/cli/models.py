"""MODEL on the command line: what it stands for, and how its images are prepared."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from styleshift.backbones.building import backbone
from styleshift.data.domains import Domains, plain
from styleshift.shifted import ShiftedModel, load
from styleshift.sources import SourceStyles
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
        path = styles or self._styles_file(at or str(getattr(self.model, "shift_at", "layer2")))
        if styles is None and at is None and not path.is_file():
            return None
        return self._fitted(path)

    def sources_at(self, layer: str) -> SourceStyles:
        """The sources' styles in the file beside it for `layer`. FileNotFoundError, with those there are, if none."""
        return self._fitted(self._styles_file(layer)).sources

    def classes_of(self, images: Domains) -> Tensor:
        """The images' classes as the model counts them. ValueError, with those it knows, if it has not all of them."""
        numbers = {plain(name): number for number, name in enumerate(self.class_names)}
        unknown = [name for name in images.class_names if plain(name) not in numbers]
        if unknown:
            known = ", ".join(self.class_names)
            raise ValueError(f"the model knows no class {', '.join(unknown)}; it knows {known}")
        return torch.tensor([numbers[plain(name)] for name in images.class_names])[torch.tensor(images.classes)]

    def _styles_file(self, layer: str) -> Path:
        return self.folder / f"styles-{layer}.safetensors"

    def _fitted(self, path: Path) -> ShiftedModel:
        if path.is_file():
            return load(self.model, path)
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
