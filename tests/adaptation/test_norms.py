"""What is changed in normalisation layers."""

import pytest
import torch
from torch import Tensor, nn

from styleshift.adaptation.norms import mix_statistics, norms_of, own_affine, use_batch_statistics
from styleshift.adaptation.wrapping import body_of


def both() -> nn.Module:
    return nn.Sequential(nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.Sequential(nn.LayerNorm(4), nn.BatchNorm2d(4)))


@pytest.mark.parametrize(("kind", "names"), [("auto", ["0", "2.1"]), ("batch", ["0", "2.1"]), ("layer", ["1", "2.0"])])
def test_a_kind_names_its_layers(kind: str, names: list[str]) -> None:
    model = both()
    assert norms_of(model, kind) == [model.get_submodule(name) for name in names]


def test_auto_takes_layer_norms_where_there_is_no_batch_norm() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4))
    assert norms_of(model) == [model[1]]


def test_what_is_skipped_is_skipped_with_all_below_it() -> None:
    model = both()
    assert norms_of(model, "batch", skip=("2",)) == [model[0]]
    many = nn.Sequential(*(nn.BatchNorm2d(1) for _ in range(11)))
    assert len(norms_of(many, skip=("1",))) == 10  # "10" is not below "1"


@pytest.mark.parametrize(
    ("kind", "skip", "said"),
    [("batch", (), "no BatchNorm layer, "), ("layer", (), "no LayerNorm"), ("auto", ("x",), "layer outside x")],
)
def test_none_at_all_is_said(kind: str, skip: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        norms_of(nn.Sequential(nn.Conv2d(3, 4, 1)), kind, skip)


def test_norms_without_scale_and_shift_have_nothing_to_learn() -> None:
    with pytest.raises(ValueError, match="affine=False"):
        own_affine([nn.BatchNorm2d(4, affine=False)])


@pytest.mark.parametrize("shape", [(5, 4, 3, 2), (1, 4, 2, 1), (6, 4)])
def test_batch_statistics_are_those_of_training(shape: tuple[int, ...]) -> None:
    norm = nn.BatchNorm2d(4) if len(shape) == 4 else nn.BatchNorm1d(4)
    features = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3 + 1
    body = body_of(nn.Sequential(norm))
    use_batch_statistics(norms_of(body))
    torch.testing.assert_close(body(features), norm.train()(features))


def test_one_value_a_channel_has_no_statistics_and_is_refused() -> None:
    body = body_of(nn.Sequential(nn.BatchNorm2d(4)))
    use_batch_statistics(norms_of(body))
    with pytest.raises(
        ValueError, match=r"more than one value a channel; a BatchNorm here gets \[1, 4, 1, 1\], one image"
    ):
        body(torch.ones(1, 4, 1, 1))
    assert body(torch.ones(2, 4, 1, 1)).isfinite().all()


def mixed(features: Tensor, share: float | None, prior: float = 16.0) -> Tensor:
    norm = nn.BatchNorm2d(2)
    norm.running_mean, norm.running_var = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 9.0])
    body = body_of(nn.Sequential(norm))
    mix_statistics(norms_of(body), share, prior)
    result: Tensor = body(features)
    return result


def test_a_mixture_is_the_one_by_hand() -> None:
    features = torch.randn(3, 2, 2, 2, generator=torch.Generator().manual_seed(0))
    mean, variance = features.mean(dim=(0, 2, 3)), features.var(dim=(0, 2, 3), correction=0)
    m = 0.75 * torch.tensor([1.0, 2.0]) + 0.25 * mean
    v = 0.75 * torch.tensor([4.0, 9.0]) + 0.25 * variance
    expected = (features - m[:, None, None]) / (v[:, None, None] + 1e-5).sqrt()
    torch.testing.assert_close(mixed(features, 0.25), expected)
    torch.testing.assert_close(mixed(features, None, prior=9.0), expected)  # 3 / (9 + 3)


def test_a_mixture_forgets_the_batch_before() -> None:
    norm = nn.BatchNorm2d(2)
    body = body_of(nn.Sequential(norm))
    mix_statistics(norms_of(body), 0.5, 0.0)
    features = torch.randn(3, 2, 2, 2)
    first = body(features)
    body(features * 9)
    assert torch.equal(body(features), first)
    assert torch.equal(norm.running_mean, torch.zeros(2))


def test_a_single_value_mixes_but_does_not_stand_alone() -> None:
    assert mixed(torch.ones(1, 2, 1, 1), 0.9).isfinite().all()
    with pytest.raises(ValueError, match="more than one value"):
        mixed(torch.ones(1, 2, 1, 1), 1.0)


def test_without_the_sources_statistics_there_is_nothing_to_mix_with() -> None:
    with pytest.raises(ValueError, match="track_running_stats=False"):
        mix_statistics([nn.BatchNorm2d(2, track_running_stats=False)], 0.5, 16.0)
