"""The sources' styles of a trained model."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from styleshift.attaching import features_at
from styleshift.backbones.building import backbone
from styleshift.style.statistics import style_of
from styleshift.training.source_data import SourceData, transform_of
from styleshift.training.source_styles import source_styles


def test_a_centre_is_the_mean_over_a_domains_training_images(made: Any) -> None:
    model, settings = backbone("smallnet", classes=3).eval(), made.settings
    data, transform = SourceData.of(made.dataset, made.images, made.split), transform_of(settings)
    styles = source_styles(model, settings, data, transform, ["layer1", "layer2"])
    assert list(styles) == ["layer1", "layer2"]
    assert styles["layer2"].domains == ("a", "b", "c")
    of_b = made.split.train[made.dataset.domains[made.split.train] == 1]
    with torch.no_grad():
        features = features_at(model, ["layer2"], transform.test(made.images.take(of_b)))["layer2"]
    assert styles["layer2"].mean[1].tolist() == pytest.approx(style_of(features).phi.mean(dim=0).tolist(), abs=1e-5)


def test_without_domain_labels_there_are_clusters(made: Any) -> None:
    settings = replace(made.settings, pseudo_domains=2)
    data = SourceData.of(made.dataset, made.images, made.split)
    model = backbone("smallnet", classes=3)
    styles = source_styles(model, settings, data, transform_of(settings), ["layer2"])
    assert styles["layer2"].domains == ("cluster 1", "cluster 2")
