"""EATA: which samples learn, how much each, and what holds the weights back."""

import math

import pytest
import torch
from tests.adaptation.conftest import TinyNet
from torch import Tensor
from torch.nn import functional as F

from styleshift.adaptation.eata import EATA, fishers
from styleshift.adaptation.norms import norms_of, own_affine, use_batch_statistics
from styleshift.adaptation.wrapping import body_of

RATE = 0.3


def entropies(logits: Tensor) -> Tensor:
    logs = logits.log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)


def logits_of(net: TinyNet, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean, variance = images.mean(dim=(0, 2, 3)), images.var(dim=(0, 2, 3), correction=0)
    plain = (images - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
    features = (plain * weight[:, None, None] + bias[:, None, None]).mean(dim=(2, 3))
    return features @ net.head.weight.detach().T + net.head.bias.detach()


@pytest.mark.parametrize("similarity", [0.9, 1.1])
def test_two_batches_are_the_pseudo_code(similarity: float, tiny: TinyNet, stream: list[Tensor]) -> None:
    eata = EATA(RATE, momentum=0.0, margin=0.9, similarity=similarity).wrap(tiny)
    weight, bias = (part.detach().clone().requires_grad_() for part in (tiny.norm.weight, tiny.norm.bias))
    margin, mean, learned = 0.9 * math.log(3), None, 0
    for images in (stream[0], stream[2]):
        torch.testing.assert_close(eata(images), logits_of(tiny, images, weight, bias).detach())
        loss, said = 0.0, []
        logits = logits_of(tiny, images, weight, bias)
        for row, uncertain in zip(logits, entropies(logits), strict=True):
            shares, number = row.detach().softmax(dim=0), float(uncertain.detach())
            far = mean is None or abs(float(F.cosine_similarity(shares, mean, dim=0))) < similarity
            if number < margin and far:
                loss = loss + uncertain * math.exp(margin - number)
                said.append(shares)
        learned += len(said)
        if said:
            now = torch.stack(said).mean(dim=0)
            mean = now if mean is None else 0.9 * mean + 0.1 * now
            slopes = torch.autograd.grad(loss / len(said), [weight, bias])
            weight = (weight - RATE * slopes[0]).detach().requires_grad_()
            bias = (bias - RATE * slopes[1]).detach().requires_grad_()
    assert learned > 0
    torch.testing.assert_close(eata.get_parameter("body.norm.weight").detach(), weight.detach())
    torch.testing.assert_close(eata.get_parameter("body.norm.bias").detach(), bias.detach())


def test_samples_like_those_before_learn_nothing(tiny: TinyNet, stream: list[Tensor]) -> None:
    eata = EATA(RATE, margin=2.0, similarity=0.0).wrap(tiny)
    eata(stream[0])
    after_one = eata.get_parameter("body.norm.weight").clone()
    eata(stream[0])
    assert torch.equal(eata.get_parameter("body.norm.weight"), after_one)


def test_fishers_are_mean_squared_gradients_of_its_own_predictions(tiny: TinyNet, stream: list[Tensor]) -> None:
    expected = [torch.zeros(2, dtype=torch.float64) for _ in range(2)]
    batches = [stream[0], stream[2][:2]]
    for images in batches:
        weight, bias = (part.detach().clone().requires_grad_() for part in (tiny.norm.weight, tiny.norm.bias))
        logits = logits_of(tiny, images, weight, bias)
        logs = logits.log_softmax(dim=1)
        loss = -sum(logs[row, int(k)] for row, k in enumerate(logits.argmax(dim=1))) / len(images)
        for total, slope in zip(expected, torch.autograd.grad(loss, [weight, bias]), strict=True):
            total += slope**2 / len(batches)
    body = body_of(tiny)
    norms = norms_of(body)
    use_batch_statistics(norms)
    found = fishers(body, own_affine(norms), [stream[0], stream[2]], most=5)
    torch.testing.assert_close(found, expected)


def test_source_images_hold_the_weights_back_and_it_says_that_it_saw_them(tiny: TinyNet, stream: list[Tensor]) -> None:
    free = EATA(0.01, margin=2.0, similarity=1.1).wrap(tiny)
    held = EATA(0.01, margin=2.0, similarity=1.1).wrap(tiny, images=[stream[0]])
    assert (free.sees.source_images, held.sees.source_images) == (False, True)
    moved = []
    for adapted in (free, held):
        for _ in range(5):
            adapted(stream[2])
        moved.append(float((adapted.get_parameter("body.norm.bias") - tiny.norm.bias).detach().abs().sum()))
    assert moved[1] < moved[0]


def test_no_source_image_where_some_were_promised_is_said(tiny: TinyNet) -> None:
    with pytest.raises(ValueError, match="`images` gave nothing"):
        EATA().wrap(tiny, images=iter([]))
