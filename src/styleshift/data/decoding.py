"""Images from files: decoded to RGB, cut to a square, many at once.

Threads and not processes work in parallel: Pillow lets go of the interpreter while it decodes and resizes, hashlib
while it hashes, and threads need no `if __name__ == "__main__"` in a user's script.
"""

import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from PIL import Image

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with how many are done and how many there are."""

# what Pillow's decoders raise on damaged files
DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    struct.error,
    zlib.error,
    MemoryError,
    OverflowError,
    Image.DecompressionBombError,
)


class DamagedImageError(ValueError):
    """A file that is no whole image."""


def rgb(path: Path) -> Image.Image:
    """The image, wholly decoded, as RGB. A rotation noted in EXIF is not applied, as is usual in training."""
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except FileNotFoundError:
        raise DamagedImageError(f"{path} is missing") from None
    except DAMAGE as damage:
        raise DamagedImageError(f"{path} cannot be decoded ({damage or type(damage).__name__})") from None


def square(image: Image.Image, size: int) -> Image.Image:
    """The middle `size`×`size` of the image, once its short side is resized to `size` (bilinear, antialiased)."""
    width, height = image.size
    short = min(width, height)
    resized = image.resize((size * width // short, size * height // short), Image.Resampling.BILINEAR)
    left, top = round((resized.width - size) / 2), round((resized.height - size) / 2)
    return resized.crop((left, top, left + size, top + size))


def decoded_all(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int | None = None,
    progress: Progress | None = None,
) -> Generator[Result, None, None]:
    """`function` of every item, in order, worked out by several threads that stay a little ahead of what is taken.

    workers: how many threads; None takes one for each core this process may use.
    """
    workers = workers or available_cores()
    waiting: deque[Future[Result]] = deque()
    rest = iter(items)
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            for _ in range(len(items)):
                while len(waiting) < 8 * workers and (following := next(rest, None)) is not None:
                    waiting.append(pool.submit(function, following))
                yield waiting.popleft().result()
                done += 1
                if progress:
                    progress(done, len(items))
        finally:
            pool.shutdown(cancel_futures=True)


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
