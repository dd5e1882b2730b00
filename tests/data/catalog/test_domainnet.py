"""DomainNet, with and without its lists."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from styleshift.data.catalog.domainnet import DomainNet
from styleshift.data.protocols import leave_one_domain_out

Touch = Callable[[Iterable[str]], Path]
DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
FILES = [f"{domain}/zebra/{domain}_{index}.jpg" for domain in DOMAINS for index in range(3)]


def write_lists(folder: Path, last: str = "2") -> None:
    folder.mkdir(exist_ok=True)
    for domain in DOMAINS:
        rows = [f"{domain}/zebra/{domain}_{index}.jpg 344\n" for index in range(2)]
        (folder / f"{domain}_train.txt").write_text("".join(rows))
        (folder / f"{domain}_test.txt").write_text(f"{domain}/zebra/{domain}_{last}.jpg 344\n")


@pytest.mark.parametrize("below", ["", "splits"])
def test_its_test_lists_choose_the_model_and_test_the_target(touch: Touch, below: str) -> None:
    root = touch(FILES)
    write_lists(root / below)
    split = leave_one_domain_out(DomainNet().load(root), "real", "official")
    assert (len(split.train), len(split.validation), len(split.test)) == (10, 5, 1)


def test_without_its_lists_there_is_no_official_split(touch: Touch) -> None:
    assert DomainNet().load(touch(FILES)).lists is None


def test_a_listed_image_that_is_missing_is_named(touch: Touch) -> None:
    root = touch(FILES)
    write_lists(root, last="9")
    with pytest.raises(ValueError, match=r"1 of 1 images are missing, clipart/zebra/clipart_9.jpg"):
        DomainNet().load(root)
