"""Office-Home in the two layouts it comes in."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from styleshift.data.catalog.office_home import OfficeHome
from styleshift.data.protocols import leave_one_domain_out

Touch = Callable[[Iterable[str]], Path]


def test_it_reads_the_authors_folders(touch: Touch) -> None:
    files = [f"{domain}/Alarm_Clock/00001.jpg" for domain in ("Art", "Clipart", "Product", "Real World")]
    dataset = OfficeHome().load(touch([*files, "Art/TV/00001.jpg", "ImageInfo.csv"]))
    assert dataset.domain_names == ("art", "clipart", "product", "real_world")
    assert [dataset.class_names[class_] for class_ in dataset.classes][:2] == ["Alarm_Clock", "TV"]
    assert dataset.lists is None


def test_it_reads_train_and_val_and_tests_on_both(touch: Touch) -> None:
    domains = ("art", "clipart", "product", "real_world")
    files = [f"{domain}/{part}/Bike/{part}.jpg" for domain in domains for part in ("train", "val")]
    split = leave_one_domain_out(OfficeHome().load(touch(files)), "RealWorld", "official")
    assert (len(split.train), len(split.validation), len(split.test)) == (3, 3, 2)


def test_a_missing_domain_is_named_with_how_to_get_it(touch: Touch) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder for product, real_world.*data get office_home"):
        OfficeHome().load(touch(["Art/Bike/1.jpg", "Clipart/Bike/1.jpg"]))
