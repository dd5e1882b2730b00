"""The algorithms as released, written plainly: what the product's layers are timed and checked against.

Written from a description of what they compute (statistics, gradients, draws), with the draws as arguments.
"""

import torch
from torch import Tensor

EPS = 1e-6


def mixstyle(features: Tensor, partners: Tensor, own_share: Tensor) -> Tensor:
    """Unbiased deviations; all statistics constant."""
    mean = features.mean(dim=(2, 3), keepdim=True).detach()
    std = (features.var(dim=(2, 3), keepdim=True) + EPS).sqrt().detach()
    normalized = (features - mean) / std
    share = own_share.view(-1, 1, 1, 1)
    mixed_mean = share * mean + (1 - share) * mean[partners]
    mixed_std = share * std + (1 - share) * std[partners]
    return normalized * mixed_std + mixed_mean


def efdmix(features: Tensor, partners: Tensor, own_share: Tensor) -> Tensor:
    """Sorts the values, then the order once more to turn it into ranks."""
    values = features.flatten(2)
    ascending, order = torch.sort(values, dim=-1)
    ranks = torch.argsort(order, dim=-1)
    matched = ascending[partners].gather(-1, ranks)
    share = own_share.view(-1, 1, 1)
    return (values + (1 - share) * (matched - values.detach())).view_as(features)


def dsu(features: Tensor, mean_noise: Tensor, std_noise: Tensor) -> Tensor:
    """Unbiased deviations over places and over samples; nothing constant."""
    mean = features.mean(dim=(2, 3))
    std = (features.var(dim=(2, 3)) + EPS).sqrt()
    sampled_mean = mean + mean_noise * (mean.var(dim=0, keepdim=True) + EPS).sqrt()
    sampled_std = std + std_noise * (std.var(dim=0, keepdim=True) + EPS).sqrt()
    normalized = (features - mean[:, :, None, None]) / std[:, :, None, None]
    return normalized * sampled_std[:, :, None, None] + sampled_mean[:, :, None, None]
