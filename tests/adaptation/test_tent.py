"""Tent, against its pseudo-code in plain Python."""

import math

import pytest
import torch
from tests.adaptation.conftest import TinyNet, World
from torch import Tensor, nn

from styleshift.adaptation.tent import Tent
from styleshift.shifted import ShiftedModel

RATE = 0.05


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


class LiteralTent:
    """BatchNorm, mean over places, linear head; entropy's gradient by hand; Adam, step by step."""

    def __init__(self, net: TinyNet, eps: float = 1e-5) -> None:
        self.scale_and_shift = [*net.norm.weight.tolist(), *net.norm.bias.tolist()]
        self.rows, self.bias, self.eps = net.head.weight.tolist(), net.head.bias.tolist(), eps
        self.first, self.second, self.steps = [0.0] * 4, [0.0] * 4, 0

    def __call__(self, images: list[list[list[list[float]]]]) -> list[list[float]]:
        pooled = self._normalised(images)
        scale, shift = self.scale_and_shift[:2], self.scale_and_shift[2:]
        logits = [
            [
                bias + sum(row[c] * (scale[c] * means[c] + shift[c]) for c in range(2))
                for row, bias in zip(self.rows, self.bias, strict=True)
            ]
            for means in pooled
        ]
        self._adam(self._gradient(pooled, logits))
        return logits

    def _normalised(self, images: list[list[list[list[float]]]]) -> list[list[float]]:
        """Mean over places of each image's normalised channels."""
        result = [[0.0, 0.0] for _ in images]
        for c in range(2):
            values = [value for image in images for line in image[c] for value in line]
            mean = sum(values) / len(values)
            deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values) + self.eps)
            for number, image in enumerate(images):
                places = [(value - mean) / deviation for line in image[c] for value in line]
                result[number][c] = sum(places) / len(places)
        return result

    def _gradient(self, pooled: list[list[float]], logits: list[list[float]]) -> list[float]:
        gradient = [0.0] * 4
        for means, row in zip(pooled, logits, strict=True):
            shares = softmax(row)
            entropy = -sum(share * math.log(share) for share in shares)
            for k, share in enumerate(shares):
                by_logit = -share * (math.log(share) + entropy) / len(logits)
                for c in range(2):
                    gradient[c] += by_logit * self.rows[k][c] * means[c]
                    gradient[2 + c] += by_logit * self.rows[k][c]
        return gradient

    def _adam(self, gradient: list[float]) -> None:
        self.steps += 1
        for i, slope in enumerate(gradient):
            self.first[i] = 0.9 * self.first[i] + 0.1 * slope
            self.second[i] = 0.999 * self.second[i] + 0.001 * slope**2
            m, v = self.first[i] / (1 - 0.9**self.steps), self.second[i] / (1 - 0.999**self.steps)
            self.scale_and_shift[i] -= RATE * m / (math.sqrt(v) + 1e-8)


def test_it_is_the_pseudo_code_step_by_step(tiny: TinyNet, stream: list[Tensor]) -> None:
    tent, literal = Tent(learning_rate=RATE).wrap(tiny), LiteralTent(tiny)
    for images in (*stream, *stream):
        expected = torch.tensor(literal(images.tolist()), dtype=torch.float64)
        torch.testing.assert_close(tent(images), expected, rtol=1e-9, atol=1e-9)
    learned = [*tent.get_parameter("body.norm.weight").tolist(), *tent.get_parameter("body.norm.bias").tolist()]
    assert learned == pytest.approx(literal.scale_and_shift, rel=1e-9)


def test_the_logits_are_those_before_the_step(tiny: TinyNet, stream: list[Tensor]) -> None:
    assert torch.equal(Tent(learning_rate=9.0).wrap(tiny)(stream[0]), Tent(learning_rate=0.0).wrap(tiny)(stream[0]))


def test_more_steps_a_batch_answer_with_the_last(tiny: TinyNet, stream: list[Tensor]) -> None:
    once, thrice = Tent(RATE).wrap(tiny), Tent(RATE, steps=3).wrap(tiny)
    for _ in range(2):
        once(stream[0])
    assert torch.equal(thrice(stream[0]), once(stream[0]))


def test_only_batch_norms_scale_and_shift_learn(world: World) -> None:
    tent = Tent(0.1).wrap(world.model)
    tent(world.images)
    changed = {
        name
        for (name, now), then in zip(tent.body.named_parameters(), world.model.parameters(), strict=True)
        if not torch.equal(now, then)
    }
    norms = {name for name, module in world.model.named_modules() if isinstance(module, nn.BatchNorm2d)}
    assert changed == {f"{name}.{part}" for name in norms for part in ("weight", "bias")}


def test_the_layer_norm_variant_learns_scale_and_shift_too(stream: list[Tensor]) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = TinyNet(nn.GroupNorm(1, 2)).double()
    tent = Tent(RATE).wrap(net)
    assert torch.equal(tent(stream[0]), net(stream[0]))  # no statistics of a batch
    parameters = [net.norm.weight.clone().detach().requires_grad_(), net.norm.bias.clone().detach().requires_grad_()]
    logits = torch.func.functional_call(net, {"norm.weight": parameters[0], "norm.bias": parameters[1]}, stream[0])
    logs = logits.log_softmax(dim=1)
    (-(logs.exp() * logs).sum(dim=1).mean()).backward()
    # Adam's first step is the learning rate, against the gradient's sign
    expected = net.norm.weight.detach() - RATE * parameters[0].grad.sign()
    torch.testing.assert_close(tent.get_parameter("body.norm.weight").detach(), expected, rtol=1e-5, atol=1e-5)


def test_one_image_of_one_place_is_refused(tiny: TinyNet) -> None:
    tent = Tent().wrap(tiny)
    with pytest.raises(ValueError, match=r"gets \[1, 2, 1, 1\], one image of one place.*such as style_shift or t3a"):
        tent(torch.ones(1, 2, 1, 1, dtype=torch.float64))
    assert tent(torch.ones(2, 2, 1, 1, dtype=torch.float64)).isfinite().all()


def test_dropout_stays_off(tiny: TinyNet, stream: list[Tensor]) -> None:
    net = nn.Sequential(nn.Dropout(0.9), tiny)
    assert torch.equal(Tent().wrap(net.train())(stream[0]), Tent().wrap(tiny)(stream[0]))


def test_around_a_model_that_shifts_it_shifts_and_learns(world: World) -> None:
    robust = ShiftedModel(world.model, world.styles, alpha=0.0)
    both, tent = Tent(0.1).wrap(robust), Tent(0.1).wrap(world.model)
    first = both(world.images)
    assert (first - tent(world.images)).abs().max() > 1e-3
    assert (both(world.images) - first).abs().max() > 1e-3
    assert torch.equal(robust(world.images), ShiftedModel(world.model, world.styles, alpha=0.0)(world.images))


def test_no_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="steps is at least 1; got 0"):
        Tent(steps=0)
