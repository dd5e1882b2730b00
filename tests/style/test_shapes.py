"""The letters of the shapes: what counts as features, a Phi, labels."""

import pytest
import torch
from jaxtyping import TypeCheckError

from styleshift.style import shapes
from styleshift.style.statistics import style_of


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_features_are_maps_of_any_floating_point(dtype: torch.dtype) -> None:
    assert isinstance(torch.zeros(2, 3, 4, 5, dtype=dtype), shapes.Features)


@pytest.mark.parametrize("tokens", [torch.zeros(2, 7, 3), torch.zeros(2, 3, 4, 5, dtype=torch.int64)])
def test_features_are_neither_tokens_nor_whole_numbers(tokens: torch.Tensor) -> None:
    assert not isinstance(tokens, shapes.Features)


def test_labels_are_whole_numbers_one_a_sample() -> None:
    assert isinstance(torch.zeros(3, dtype=torch.int64), shapes.Labels)
    assert not isinstance(torch.zeros(3), shapes.Labels)


def test_shapes_are_checked_while_testing() -> None:
    with pytest.raises(TypeCheckError):
        style_of(torch.zeros(3, 4, 5))
