"""Permuted AdaIN: every sample in the style of another one."""

import pytest
import torch
from torch import Tensor

from styleshift.layers.padain import PAdaIN
from styleshift.style.draws import Draws
from styleshift.style.statistics import style_of


def maps(*shape: int, seed: int = 0) -> Tensor:
    """Features whose samples differ in mean and deviation."""
    generator = torch.Generator().manual_seed(seed)
    looks = torch.rand(2, *shape[:2], 1, 1, generator=generator, dtype=torch.float64)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * (0.5 + 3 * looks[0]) + 4 * looks[1]


def layer_with(seed: int = 0) -> PAdaIN:
    return PAdaIN(p=1.0, generator=torch.Generator().manual_seed(seed)).train()


def partners_drawn(seed: int, count: int) -> list[int]:
    """The partners that a layer with this seed draws, after its coin."""
    draws = Draws(torch.Generator().manual_seed(seed))
    draws.coin(1.0)
    return draws.permutation(count).tolist()


def plainly_exchanged(features: Tensor, partners: list[int]) -> Tensor:
    """Eq. 3 letter by letter, with each partner's style."""
    exchanged = torch.empty_like(features)
    for sample, partner in enumerate(partners):
        for channel in range(features.shape[1]):
            values, lent = features[sample, channel], features[partner, channel]
            std, lent_std = ((part.var(correction=0) + 1e-6).sqrt() for part in (values, lent))
            exchanged[sample, channel] = (values - values.mean()) / std * lent_std + lent.mean()
    return exchanged


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [6, 7])
def test_it_is_adain_with_its_permutation(seed: int, count: int) -> None:
    features = maps(count, 3, 4, 5, seed=seed)
    torch.testing.assert_close(layer_with(seed)(features), plainly_exchanged(features, partners_drawn(seed, count)))


def test_no_style_is_lost_and_none_is_new() -> None:
    features = maps(6, 3, 4, 5)
    before, after = (sorted(style_of(part).phi.tolist()) for part in (features, layer_with()(features)))
    torch.testing.assert_close(torch.tensor(after), torch.tensor(before))


def test_a_batch_of_one_keeps_its_style() -> None:
    features = maps(1, 3, 4, 5)
    torch.testing.assert_close(layer_with()(features), features)


def test_the_sample_that_lends_its_style_receives_no_gradient() -> None:
    features, partners = maps(6, 3, 4, 5).requires_grad_(), partners_drawn(2, 6)
    borrower = next(sample for sample, partner in enumerate(partners) if sample != partner)
    layer_with(2)(features)[borrower].pow(3).sum().backward()
    assert features.grad is not None
    receives = features.grad.flatten(1).abs().amax(dim=1) > 0
    assert receives.tolist() == [sample == borrower for sample in range(6)]


def test_the_gradient_passes_through_a_samples_own_statistics() -> None:
    features, seed = maps(3, 2, 2, 3).requires_grad_(), 1
    partners = partners_drawn(seed, 3)
    lent = features.detach()[partners]

    def with_lent_styles(own: Tensor) -> Tensor:
        together = torch.cat([own, lent])
        return plainly_exchanged(together, [3, 4, 5, 3, 4, 5])[:3]

    weights = maps(3, 2, 2, 3, seed=1)
    (given,) = torch.autograd.grad((layer_with(seed)(features) * weights).sum(), features)
    (expected,) = torch.autograd.grad((with_lent_styles(features) * weights).sum(), features)
    torch.testing.assert_close(given, expected)


def test_left_alone_its_probability_is_that_of_released_code() -> None:
    assert PAdaIN().p == 0.01


def test_it_says_what_it_is() -> None:
    assert repr(PAdaIN(0.2)) == "PAdaIN(p=0.2)"
