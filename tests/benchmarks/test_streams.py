"""Streams of a lab's models, on a very small lab."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from benchmarks import streams
from styleshift.data.transforms import transform
from styleshift.experiments.materials import materials_of
from styleshift.experiments.planning import runs_of
from styleshift.experiments.recipe import recipe
from styleshift.experiments.runner import Grid
from styleshift.experiments.running import split_of
from styleshift.experiments.scales import scale
from styleshift.experiments.store import Store
from styleshift.training.progress import ShowProgress, silent
from styleshift.training.streams import ORDERS

ONLY = ["target=sketch", "method=baseline"]


@contextmanager
def quiet(title: str) -> Iterator[ShowProgress]:
    yield silent


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    asked = recipe("pacs-test-time-adaptation")
    Grid(asked, runs_of(asked, scale("smoke"), only=ONLY), Store(folder), quiet).run()
    return folder


def test_it_writes_every_order_and_method_with_what_each_was_allowed_to_see(store: Path, tmp_path: Path) -> None:
    methods = ("--method", "ts", "--method", "tent")
    small = ("--length", "30", "--batch", "8", "--limit", "12", "--threads", "1")
    streams.main([str(store), *methods, *small, "--to", str(tmp_path / "results")])
    (file,) = (tmp_path / "results").iterdir()
    written = json.loads(file.read_text())
    assert [(each["order"], each["method"]) for each in written["played"]] == [
        (order, method) for order in ORDERS for method in ("ts", "tent")
    ]
    assert {each["order"]: each["samples"] for each in written["played"]}["long"] == 30
    assert {each["method"]: each["sees"]["updates_weights"] for each in written["played"]} == {
        "ts": False,
        "tent": True,
    }
    assert written["command"].startswith(f"python -m benchmarks.streams {store} --batch 8")
    domains = {each["order"]: list(each["per_domain"]) for each in written["played"]}
    assert domains["iid"] == ["sketch"]
    assert len(domains["mixed"]) == len(domains["gradual"]) == 4


def test_a_choice_that_leaves_nothing_is_said(store: Path) -> None:
    with pytest.raises(SystemExit, match=r"no model in .* fits target=photo"):
        streams.main([str(store), "--only", "target=photo"])


def test_a_limit_draws_from_all_classes_and_eata_sees_source_images(store: Path, tmp_path: Path) -> None:
    small = ("--order", "iid", "--batch", "8", "--limit", "9", "--threads", "1")
    streams.main([str(store), "--method", "eata", *small, "--to", str(tmp_path)])
    (file,) = tmp_path.iterdir()
    (played,) = json.loads(file.read_text())["played"]
    assert (played["samples"], played["sees"]["source_images"]) == (9, True)
    (run,) = runs_of(recipe("pacs-test-time-adaptation"), scale("smoke"), only=ONLY)[:1]
    materials = materials_of(run, store)
    assert len(streams.labelled(run, materials, False, 9).classes.unique()) > 3
    assert len(streams.labelled(run, materials, False, 9, seed=1)) == 9


def test_source_images_are_those_of_the_training_from_all_sources(store: Path) -> None:
    (run,) = runs_of(recipe("pacs-test-time-adaptation"), scale("smoke"), only=ONLY)[:1]
    materials = materials_of(run, store)
    batches = list(streams.source_images(run, materials, 8, seed=0))
    training = split_of(run, materials).train
    assert sum(map(len, batches)) == len(training)
    in_order = transform(run.settings.transform).test(materials.images.take(training))
    assert torch.equal(torch.cat(batches).sum(dim=(1, 2, 3)).sort().values, in_order.sum(dim=(1, 2, 3)).sort().values)
    assert not torch.equal(torch.cat(batches), in_order)
