"""One style for all."""

import pytest
import torch
from tests.adaptation.conftest import World

from styleshift.adaptation.conststyle import ConstStyle, unified
from styleshift.sources import sources_of
from styleshift.style.statistics import Style, restyle, style_of


def test_the_unified_style_is_the_mean_of_the_domains_whatever_their_size(world: World) -> None:
    domains = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2]
    styles = sources_of(world.model, [(world.sources, domains)], "layer2")
    one = unified(styles)
    torch.testing.assert_close(one.mean[0], (styles.mean[0] + styles.mean[1] + styles.mean[2]) / 3)
    assert one.counts.tolist() == [12]
    assert (one.variance >= 0).all()


def test_of_one_domain_it_is_that_domain(world: World) -> None:
    styles = sources_of(world.model, [(world.sources, ["a"] * 12)], "layer2")
    torch.testing.assert_close(unified(styles).mean, styles.mean)
    torch.testing.assert_close(unified(styles).variance, styles.variance)


def test_every_image_goes_a_part_of_the_way(world: World) -> None:
    layers = dict(world.model.named_children())
    goal = world.styles.style.phi.mean(dim=0, keepdim=True)
    features = world.images
    for name, layer in layers.items():
        features = layer(features if name != "fc" else features.flatten(1))
        if name == "layer2":
            own = style_of(features)
            features = restyle(features, own, Style.of_phi(0.75 * own.phi + 0.25 * goal))
    found = ConstStyle(fraction=0.25).wrap(world.model, styles=world.styles)(world.images)
    torch.testing.assert_close(found, features, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fraction", [0.0, 1.5])
def test_no_way_or_more_than_all_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction is the share of the way"):
        ConstStyle(fraction)
