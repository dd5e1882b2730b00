"""Office-Caltech10."""

from collections.abc import Callable, Iterable
from pathlib import Path

from styleshift.data.catalog.office_caltech import OfficeCaltech


def test_it_reads_its_folders(touch: Callable[[Iterable[str]], Path]) -> None:
    files = [f"{domain}/back_pack/frame_0001.jpg" for domain in ("amazon", "caltech", "dslr", "webcam")]
    dataset = OfficeCaltech().load(touch([*files, "dslr/mug/frame_0001.jpg"]))
    assert dataset.counts().sum(axis=1).tolist() == [1, 1, 2, 1]
    assert len(dataset.class_names) == 10
