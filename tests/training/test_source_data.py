"""What training may see, and that it is nothing of the target."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from styleshift.data.transforms import Light
from styleshift.training.settings import Settings
from styleshift.training.source_data import SourceData, transform_of

LIGHT = Light(cache_size=20, size=16)


def data_of(made: Any, **split: Any) -> SourceData:
    return SourceData.of(made.dataset, made.images, replace(made.split, **split))


def test_it_has_the_sources_alone(made: Any) -> None:
    data = data_of(made)
    assert data.domain_names == ("a", "b", "c")
    assert (len(data.train), len(data.validation)) == (54, 18)


def test_domains_count_over_the_sources_alone(made: Any) -> None:
    keep = made.dataset.domains[made.split.train] != 1
    data = data_of(made, train=made.split.train[keep], validation=made.split.validation[:0])
    assert data.domain_names == ("a", "c")
    assert set(data.train.domains.tolist()) == {0, 1}


def test_no_index_of_the_target_is_kept(made: Any) -> None:
    data = data_of(made)
    kept = {*data.train.indices.tolist(), *data.validation.indices.tolist()}
    assert not kept & set(made.split.test.tolist())


def test_a_batch_holds_the_rows_asked_for(made: Any) -> None:
    rows = torch.tensor([3, 0])
    batch = data_of(made).train.training_batch(rows, LIGHT, torch.Generator())
    assert batch.images.shape == (2, 3, 16, 16)
    assert batch.classes.tolist() == made.dataset.classes[made.split.train[[3, 0]]].tolist()


def test_test_batches_hold_every_row_in_order(made: Any) -> None:
    part = data_of(made).train
    batches = list(part.test_batches(LIGHT, 20))
    assert [len(batch.images) for batch in batches] == [20, 20, 14]
    assert torch.equal(torch.cat([batch.classes for batch in batches]), part.classes)


def test_an_empty_train_part_is_refused(made: Any) -> None:
    with pytest.raises(ValueError, match="nothing to train on: the split's train part of made is empty"):
        data_of(made, train=made.split.train[:0])


def test_validation_on_a_domain_that_is_not_trained_on_is_refused(made: Any) -> None:
    with pytest.raises(ValueError, match="validation images come from domains that are not trained on: d"):
        data_of(made, validation=made.split.test)


def test_the_fingerprint_follows_pixels_labels_and_split(made: Any) -> None:
    classes = made.dataset.classes.copy()
    classes[0] += 1
    relabelled = replace(made, dataset=replace(made.dataset, classes=classes))
    others = replace(made, images=replace(made.images, key="others"))
    prints = {
        data_of(made).fingerprint,
        data_of(relabelled).fingerprint,
        data_of(others).fingerprint,
        data_of(made, train=made.split.train[1:]).fingerprint,
        data_of(made, validation=made.split.validation[1:]).fingerprint,
    }
    assert len(prints) == 5


def test_the_fingerprint_does_not_know_the_target(made: Any) -> None:
    assert data_of(made).fingerprint == data_of(made, test=made.split.test[:3]).fingerprint


def test_sizes_in_the_settings_are_the_transforms() -> None:
    assert transform_of(Settings(cache_size=40, image_size=32)) == Light(cache_size=40, size=32)
    assert transform_of(Settings()) == Light()
