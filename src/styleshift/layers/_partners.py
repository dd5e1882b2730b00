"""Who lends a sample its style: the partners of MixStyle and EFDMix."""

from typing import Literal, get_args

import torch

from styleshift.style.draws import Draws
from styleshift.style.shapes import Labels

Partner = Literal["random", "crossdomain"]


def partners(how: Partner, count: int, draws: Draws) -> Labels:
    """The index of each sample's partner, a permutation of the batch.

    how: "random", any sample of the batch; "crossdomain", one of the other half, where the halves are two domains.

    Reading: in the middle of an odd batch, "crossdomain" leaves a sample its own style (released code fails).
    """
    if how == "random":
        return draws.permutation(count)
    half = count // 2
    first, middle, second = torch.split(torch.arange(count), [half, count - 2 * half, half])
    return torch.cat([second[draws.permutation(half)], middle, first[draws.permutation(half)]])


def expect_partner(how: str) -> None:
    """Say what is needed if partners are not found this way."""
    if how not in get_args(Partner):
        raise ValueError(f"partner is one of {get_args(Partner)}; got {how!r}")
