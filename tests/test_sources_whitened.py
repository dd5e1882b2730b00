"""Styles that measure distances where a domain's images scatter alike, and the file that keeps them."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from styleshift.sources import SourceStyles, read_styles
from styleshift.style.shifting import scores_of
from styleshift.style.whitening import whitening_of


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def heaps(width: int = 4, seed: int = 0) -> list[Tensor]:
    """Styles of the images of three domains, `[images, P]` each."""
    half = width // 2
    every = [noise(count, width, seed=seed + count) for count in (50, 70, 90)]
    means = [rows[:, :half] + noise(half, seed=seed + len(rows) + 1) for rows in every]
    return [
        torch.cat([mean, (mean / 3 + rows[:, half:] / 5).exp()], dim=1) for mean, rows in zip(means, every, strict=True)
    ]


def summed_up(domains: list[Tensor], at: str = "layer1") -> SourceStyles:
    """The summary of images of these styles."""
    counts = torch.tensor([len(rows) for rows in domains])
    every = torch.cat(domains)
    return SourceStyles(
        at,
        tuple(range(len(domains))),
        counts,
        torch.stack([rows.mean(dim=0) for rows in domains]),
        torch.stack([rows.var(dim=0, correction=0) for rows in domains]),
        every.float(),
        torch.arange(len(domains)).repeat_interleave(counts),
        torch.arange(len(every)),
    )


def strangers(width: int = 4) -> Tensor:
    return noise(30, width, seed=5).abs() * 3 + 0.1


def test_scores_are_mahalanobis_gaps_in_mahalanobis_spreads(
    whitened_scores: Callable[..., list[float]],
) -> None:
    found = summed_up(heaps()).whitened().scores(strangers())
    torch.testing.assert_close(found.tolist(), whitened_scores(heaps(), strangers()), rtol=1e-5, atol=0)


def test_without_a_whitening_scores_are_equation_7s() -> None:
    styles, strange = summed_up(heaps()), strangers().float()
    assert torch.equal(styles.scores(strange), scores_of(strange, styles.style.phi))


def test_the_whitening_is_that_of_the_sample() -> None:
    styles = summed_up(heaps())
    found = styles.whitened().whitening
    assert found is not None
    wanted = whitening_of(styles.sample, styles.sample_domain, styles.mean)
    assert torch.equal(found.matrix, wanted.matrix)
    assert torch.equal(found.centres, wanted.centres)


def test_they_are_the_same_styles_otherwise() -> None:
    styles = summed_up(heaps())
    white = styles.whitened()
    assert styles.whitening is None
    assert replace(white, whitening=None).__dict__ == styles.__dict__


def test_more_images_need_another_whitening() -> None:
    white = summed_up(heaps()).whitened()
    assert white.merged(white).whitening is None


# --- the file


def version_of(path: Path) -> str:
    with safe_open(path, framework="pt") as file:
        return str(file.metadata()["version"])


def expect_same(one: SourceStyles, other: SourceStyles) -> None:
    assert (one.at, one.domains) == (other.at, other.domains)
    for name in ("counts", "mean", "variance", "sample", "sample_domain", "sample_key"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    assert (one.whitening is None) == (other.whitening is None)
    for mine, yours in zip(one.whitening or (), other.whitening or (), strict=True):
        assert torch.equal(mine, yours)


@pytest.mark.parametrize(
    ("whitened", "gated", "several", "version"),
    [
        ((), False, False, "1"),
        ((), True, False, "2"),
        ((), False, True, "3"),
        ((), True, True, "3"),
        (("own",), False, False, "3"),
        (("gate",), True, False, "3"),
        (("gate",), True, True, "3"),
        (("own", "gate", "then"), True, True, "3"),
    ],
)
def test_all_of_it_comes_back_from_a_file_of_the_oldest_version_that_can_hold_it(
    tmp_path: Path, whitened: tuple[str, ...], gated: bool, several: bool, version: str
) -> None:
    def made(name: str, seed: int) -> SourceStyles:
        styles = summed_up(heaps(width=4 + 2 * seed, seed=seed), at=f"{name}{seed}")
        return styles.whitened() if name in whitened else styles

    own, gate = made("own", 0), made("gate", 1) if gated else None
    then = tuple(made("then", seed) for seed in range(2, 14)) if several else ()  # then1 and then10 begin alike
    own.save(tmp_path / "s", gate=gate, then=then, note=[1, "two"])
    back = read_styles(tmp_path / "s")
    assert version_of(tmp_path / "s") == version
    expect_same(back.styles, own)
    assert (back.gate is None) == (gate is None)
    for mine, yours in zip([back.gate] if back.gate else [], [gate] if gate else [], strict=True):
        expect_same(mine, yours)
    for mine, yours in zip(back.then, then, strict=True):
        expect_same(mine, yours)
    assert back.header["note"] == [1, "two"]
    expect_same(SourceStyles.load(tmp_path / "s"), own)


def test_a_gate_beside_its_own_styles_shares_no_memory_in_the_file(tmp_path: Path) -> None:
    own = summed_up(heaps())
    own.save(tmp_path / "s", gate=own.whitened(), then=[own])
    back = read_styles(tmp_path / "s")
    assert back.gate is not None
    expect_same(back.gate, own.whitened())
    expect_same(back.then[0], own)


@pytest.mark.parametrize("version", ["1", "2"])
def test_files_of_earlier_versions_are_read(tmp_path: Path, version: str) -> None:
    own, gate = summed_up(heaps()), summed_up(heaps(width=6), at="stem")
    names = ("counts", "mean", "variance", "sample", "sample_domain", "sample_key")
    tensors = {name: getattr(own, name) for name in names}
    header: dict[str, object] = {"at": "layer1", "domains": [0, 1, 2]}
    if version == "2":
        tensors |= {f"gate.{name}": getattr(gate, name) for name in names}
        header["gate"] = {"at": "stem", "domains": [0, 1, 2]}
    save_file(
        tensors, tmp_path / "s", {"format": "styleshift.styles", "version": version, "header": json.dumps(header)}
    )
    back = read_styles(tmp_path / "s")
    expect_same(back.styles, own)
    assert back.then == ()
    assert (back.gate is None) == (version == "1")
    if back.gate is not None:
        expect_same(back.gate, gate)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("white_matrix", torch.eye(3).double()),
        ("white_matrix", torch.ones(4).double()),
        ("white_matrix", torch.eye(4).double() * math.nan),
        ("white_matrix", None),
        ("white_centres", torch.ones(2, 4).double()),
        ("white_centres", None),
        ("gate.white_matrix", torch.eye(4)[:3].double()),
        ("gate.white_centres", torch.ones(3, 4).double() * math.inf),
        ("gate.white_centres", None),
        ("then0.mean", torch.ones(3, 6).double()),
        ("then0.mean", None),
        ("then1.mean", torch.ones(3, 4).double()),
        ("mean", torch.ones(3).double()),
    ],
)
def test_a_damaged_file_is_said(tmp_path: Path, name: str, broken: Tensor | None) -> None:
    own = summed_up(heaps()).whitened()
    own.save(tmp_path / "s", gate=own, then=[summed_up(heaps())])
    read_styles(tmp_path / "s")
    with safe_open(tmp_path / "s", framework="pt") as file:
        about = file.metadata()
    tensors = load_file(tmp_path / "s")
    if broken is None:
        del tensors[name]
    else:
        tensors[name] = broken
    save_file(tensors, tmp_path / "s", about)
    with pytest.raises(ValueError, match="is damaged"):
        read_styles(tmp_path / "s")
