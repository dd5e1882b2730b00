"""Which layers a shift may be asked to stand at."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from styleshift.attaching import Calls
from styleshift.placing import body_and_places, checked_names


class Winding(nn.Module):
    """Modules `a`, `b` (which runs twice), `c` and `d`, in this order."""

    def __init__(self) -> None:
        super().__init__()
        self.d, self.c, self.b, self.a, self.last = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(5))

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.d(self.c(self.b(self.b(self.a(images)))))).square().mean(dim=(2, 3))


IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def checked(at: str | Sequence[str] | None, gate_at: str | None = None, calls: Calls = "every") -> tuple[str, ...]:
    return checked_names(Winding(), IMAGES, at, gate_at, "auto", None, calls)


@pytest.mark.parametrize("at", ["a", ("a",), ["a", "c"], ("a", "c", "d"), ["c", "d"]])
@pytest.mark.parametrize("gate_at", ["a", None])
def test_layers_in_the_order_in_which_they_run_stay_in_it(at: str | Sequence[str], gate_at: str | None) -> None:
    assert checked(at, gate_at) == ((at,) if isinstance(at, str) else tuple(at))


@pytest.mark.parametrize(
    ("at", "gate_at", "first", "then"),
    [
        (("c", "a"), None, "c", "a"),
        (("a", "d", "c"), None, "d", "c"),
        ("a", "c", "c", "a"),
        (("a", "d"), "c", "c", "a"),
        (("c", "a"), "a", "c", "a"),
    ],
)
def test_another_order_is_said_with_the_two_that_are_wrong(
    at: str | Sequence[str], gate_at: str | None, first: str, then: str
) -> None:
    with pytest.raises(ValueError, match=f"'{first}' needs to be a layer that runs before '{then}'"):
        checked(at, gate_at)


@pytest.mark.filterwarnings("ignore:'b' runs 2 times in one forward. Styles")
@pytest.mark.parametrize(("at", "gate_at"), [(("b", "c"), None), ("c", "b"), (("c", "d"), "b")])
def test_a_layer_that_decides_twice_is_asked_which_time(at: str | Sequence[str], gate_at: str | None) -> None:
    with pytest.raises(ValueError, match=r"'b' runs 2 times in one forward, so which .* calls='first'"):
        checked(at, gate_at)
    assert checked(at, gate_at, calls="first") == ((at,) if isinstance(at, str) else at)


@pytest.mark.parametrize(("at", "gate_at"), [("b", None), ("b", "a"), (("a", "b"), None), (("b", "c"), "a")])
def test_a_layer_that_shifts_twice_what_was_decided_once_is_only_warned_of(
    at: str | Sequence[str], gate_at: str | None
) -> None:
    with pytest.warns(UserWarning, match=r"'b' runs 2 times in one forward\. .* calls='first'"):
        assert "b" in checked(at, gate_at)


def test_the_deepest_of_several_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="'last' is the deepest layer"):
        assert checked(("a", "last")) == ("a", "last")


def test_without_a_layer_those_that_can_take_a_shift_are_listed() -> None:
    with pytest.raises(ValueError, match=r"It can be a \(3 channels\), b .*, c .*, d "):
        checked(None)


@pytest.mark.parametrize("at", [("a", "x"), ("x", "a"), "x"])
def test_a_name_that_is_not_there_is_said(at: str | Sequence[str]) -> None:
    with pytest.raises(KeyError, match="no module 'x'"):
        checked(at)


def test_the_model_stays_as_it_is() -> None:
    model = Winding().train()
    body, one, found = body_and_places(model, IMAGES, "auto", None)
    assert model.training
    assert not body.training
    assert next(body.parameters()) is next(model.parameters())
    assert one.shape == (1, 3, 8, 8)
    assert [(place.name, place.calls) for place in found] == [("a", 1), ("b", 2), ("c", 1), ("d", 1), ("last", 1)]
    assert not any(part._forward_hooks for part in model.modules())


def test_images_that_the_model_does_not_take_are_said() -> None:
    with pytest.raises(ValueError, match="Winding does not run on the images of the first batch"):
        body_and_places(Winding(), torch.zeros(2, 4, 8, 8), "auto", None)
