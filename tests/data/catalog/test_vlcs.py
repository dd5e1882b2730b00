"""VLCS in the two layouts it comes in."""

from collections.abc import Callable, Iterable
from pathlib import Path

from styleshift.data.catalog.vlcs import VLCS
from styleshift.data.protocols import leave_one_domain_out

Touch = Callable[[Iterable[str]], Path]


def test_it_reads_numbered_classes_and_its_own_parts(touch: Touch) -> None:
    parts = {"train": 3, "crossval": 1, "test": 2, "full": 4}
    files = [
        f"{domain}/{part}/{class_}/{part}{index}.jpg"
        for domain in ("CALTECH", "LABELME", "PASCAL", "SUN")
        for part, count in parts.items()
        for class_ in range(5)
        for index in range(count)
    ]
    dataset = VLCS().load(touch(files))
    assert dataset.class_names == ("bird", "car", "chair", "dog", "person")
    assert dataset.counts().tolist() == [[6] * 5] * 4
    split = leave_one_domain_out(dataset, "Sun", "official")
    assert (len(split.train), len(split.validation), len(split.test)) == (3 * 15, 15, 10)


def test_it_reads_named_classes_without_parts(touch: Touch) -> None:
    files = [f"{domain}/dog/1.jpg" for domain in ("Caltech101", "LabelMe", "SUN09", "VOC2007")]
    dataset = VLCS().load(touch(files))
    assert [
        (file, dataset.domain_names[domain]) for file, domain in zip(dataset.files, dataset.domains, strict=True)
    ] == [
        ("Caltech101/dog/1.jpg", "caltech"),
        ("LabelMe/dog/1.jpg", "labelme"),
        ("SUN09/dog/1.jpg", "sun"),
        ("VOC2007/dog/1.jpg", "pascal"),
    ]
    assert set(dataset.classes.tolist()) == {3}
    assert dataset.lists is None
