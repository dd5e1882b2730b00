"""Entropy, by hand and in halves."""

import math

import pytest
import torch

from styleshift.adaptation.entropy import entropies, marginal_entropy


def test_it_is_ln_k_where_all_classes_are_as_likely_and_0_where_one_is_certain() -> None:
    found = entropies(torch.tensor([[2.0, 2.0, 2.0, 2.0], [0.0, 1000.0, 0.0, 0.0]]))
    assert found.tolist() == pytest.approx([math.log(4), 0.0])


def test_it_is_the_sum_by_hand() -> None:
    shares = [0.5, 0.25, 0.25]
    found = entropies(torch.tensor([[math.log(share) + 3 for share in shares]], dtype=torch.float64))
    assert found.item() == pytest.approx(-sum(share * math.log(share) for share in shares), abs=1e-12)


def test_half_precision_is_summed_in_single() -> None:
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)).half()
    assert torch.equal(entropies(logits), entropies(logits.float()))


def test_of_views_it_is_that_of_the_mean_prediction() -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean = logits.softmax(dim=1).mean(dim=0)
    torch.testing.assert_close(marginal_entropy(logits), -(mean * mean.log()).sum())


def test_views_that_are_sure_of_different_classes_are_not_sure_together() -> None:
    assert marginal_entropy(torch.tensor([[99.0, 0.0], [0.0, 99.0]])).item() == pytest.approx(math.log(2))
