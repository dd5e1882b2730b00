"""Style balancing: how many samples move where, who lends them a style, and the features after that."""

import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from styleshift.style.balancing import balanced, expect_choices, imbalance, lenders, planned_moves, wanted_moves
from styleshift.style.draws import Draws

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LAYOUTS = [torch.contiguous_format, torch.channels_last]

Moves = list[tuple[int, int]]


def seeded(seed: int = 0) -> Draws:
    return Draws(torch.Generator().manual_seed(seed))


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def longs(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


def plain_choice(phi: list[list[float]], count: int) -> list[int]:
    """Algorithm 1, letter by letter."""
    candidates, chosen = list(range(len(phi))), []
    while len(chosen) < count and len(candidates) > 1:
        pairs = [(i, j) for i in candidates for j in candidates if i < j]
        i, j = min(pairs, key=lambda pair: math.dist(phi[pair[0]], phi[pair[1]]))
        others = [z for z in candidates if z not in (i, j)]
        from_i = min((math.dist(phi[z], phi[i]) for z in others), default=math.inf)
        from_j = min((math.dist(phi[z], phi[j]) for z in others), default=math.inf)
        chosen.append(i if from_i < from_j else j)
        candidates.remove(chosen[-1])
    return chosen + candidates[: count - len(chosen)]


def plain_moves(classes: list[int], domains: list[int], phi: list[list[float]], n_domains: int) -> Moves:
    """Steps 1 and 2 with whole targets, letter by letter."""
    moves = []
    for k in sorted(set(classes)):
        members = [
            [s for s, (c, d) in enumerate(zip(classes, domains, strict=True)) if (c, d) == (k, n)]
            for n in range(n_domains)
        ]
        counts = [len(of_domain) for of_domain in members]
        targets = [sum(counts) // n_domains] * n_domains
        for n in sorted(range(n_domains), key=lambda n: (-counts[n], n))[: sum(counts) % n_domains]:
            targets[n] += 1
        for n in range(n_domains):
            for chosen in plain_choice([phi[s] for s in members[n]], max(0, len(members[n]) - targets[n])):
                most = max(range(n_domains), key=lambda m: (targets[m] - counts[m], -m))
                counts[most] += 1
                moves.append((members[n][chosen], most))
    return moves


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, int]:
    """Classes, domains, styles and the number of domains of a mini-batch, some domains and classes perhaps empty."""
    n_domains = draw(st.integers(1, 5))
    pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, n_domains - 1)), max_size=24)
    labels = torch.tensor(draw(pairs), dtype=torch.int64).view(-1, 2)
    return labels[:, 0], labels[:, 1], noise(len(labels), 6, seed=draw(st.integers(0, 99))), n_domains


def domains_after(domains: Tensor, moves: Moves) -> Tensor:
    after = domains.clone()
    for sample, domain in moves:
        after[sample] = domain
    return after


# how many


@pytest.mark.parametrize(
    ("counts", "surplus", "deficit"),
    [
        ([2, 2, 2], [0, 0, 0], [0, 0, 0]),
        ([6, 0, 0], [4, 0, 0], [-4, 2, 2]),
        ([2, 0, 0], [1, 0, 0], [-1, 1, 0]),
        ([1, 0, 0], [0, 0, 0], [0, 0, 0]),
        ([0, 1, 3], [0, 0, 1], [1, 0, -1]),
        ([0, 0, 0], [0, 0, 0], [0, 0, 0]),
        ([5], [0], [0]),
    ],
)
def test_whole_targets_are_these(counts: list[int], surplus: list[int], deficit: list[int]) -> None:
    assert imbalance(counts) == (surplus, deficit)


def test_the_literal_loop_empties_the_domain_of_two() -> None:
    surplus, _ = imbalance([2, 0, 0], "ceil")
    assert surplus == [2, 0, 0]


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_the_literal_loop_moves_the_surplus_over_the_mean_rounded_up(counts: list[int]) -> None:
    mean = sum(counts) / len(counts)
    assert imbalance(counts, "ceil")[0] == [math.ceil(max(0, n - mean) - 1e-9) for n in counts]


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_no_whole_targets_could_do_with_fewer_moves(counts: list[int]) -> None:
    least, extra = divmod(sum(counts), len(counts))
    fewest = min(
        sum(max(0, n - least - (domain in larger)) for domain, n in enumerate(counts))
        for larger in combinations(range(len(counts)), extra)
    )
    assert sum(imbalance(counts)[0]) == fewest


# who moves where


def test_the_worked_example_moves_the_near_duplicates_to_the_empty_domains() -> None:
    classes, domains = longs(0, 0, 0, 0, 0, 0, 1, 1), longs(0, 0, 0, 0, 0, 0, 1, 2)
    phi = torch.tensor([0.0, 1.0, 3.0, 10.0, 11.0, 20.0, 0.0, 0.0])[:, None]
    # 0-1 are nearest, then 10-11, then 0-3, then 11-20; of each, the one nearer to the rest goes
    assert planned_moves(classes, domains, phi, 3) == [(1, 1), (3, 2), (2, 1), (4, 2)]


def test_classes_come_in_order_and_in_them_domains() -> None:
    classes, domains = longs(1, 1, 1, 1, 0, 0, 0), longs(1, 1, 0, 0, 1, 1, 0)
    moves = wanted_moves(classes, domains, noise(7, 4), 4)
    assert [(classes[s].item(), domains[s].item()) for s, _ in moves] == [(0, 1), (1, 0), (1, 1)]


def test_ties_of_deficit_go_to_the_lower_domain() -> None:
    assert [domain for _, domain in wanted_moves(longs(0, 0, 0, 0), longs(2, 2, 2, 2), noise(4, 2), 4)] == [0, 1, 3]


def test_the_largest_deficit_is_filled_first() -> None:
    classes, domains = torch.zeros(9, dtype=torch.int64), longs(0, 0, 0, 0, 0, 0, 0, 1, 1)
    assert [domain for _, domain in wanted_moves(classes, domains, noise(9, 2), 3)] == [2, 2, 1, 2]


@given(batch=batches())
@settings(deadline=None, max_examples=150)
def test_the_moves_are_those_of_the_paper_step_by_step(batch: tuple[Tensor, Tensor, Tensor, int]) -> None:
    classes, domains, phi, n_domains = batch
    expected = plain_moves(classes.tolist(), domains.tolist(), phi.tolist(), n_domains)
    assert wanted_moves(classes, domains, phi, n_domains) == expected


@given(batch=batches())
@settings(deadline=None)
def test_after_the_moves_every_class_is_balanced_to_within_one(batch: tuple[Tensor, Tensor, Tensor, int]) -> None:
    classes, domains, phi, n_domains = batch
    after = domains_after(domains, wanted_moves(classes, domains, phi, n_domains))
    for k in classes.unique():
        counts = torch.bincount(after[classes == k], minlength=n_domains)
        assert counts.max() - counts.min() <= 1


@given(
    batch=batches(), rounding=st.sampled_from(["whole", "ceil"]), selection=st.sampled_from(["least_missed", "random"])
)
@settings(deadline=None)
def test_nobody_moves_twice_or_within_its_domain(
    batch: tuple[Tensor, Tensor, Tensor, int], rounding: str, selection: str
) -> None:
    classes, domains, phi, n_domains = batch
    moves = wanted_moves(classes, domains, phi, n_domains, rounding=rounding, selection=selection, draws=seeded())
    assert len({sample for sample, _ in moves}) == len(moves)
    assert all(domains[sample] != domain for sample, domain in moves)


def test_the_literal_loop_sends_nobody_home_where_no_domain_lacks_any() -> None:
    classes, domains = torch.zeros(5, dtype=torch.int64), longs(0, 0, 0, 1, 1)
    moves = wanted_moves(classes, domains, noise(5, 2), 3, rounding="ceil")
    assert sorted(domains_after(domains, moves).tolist()) == [0, 0, 1, 2, 2]


def test_the_literal_loop_moves_both_of_two_samples() -> None:
    moves = wanted_moves(longs(0, 0), longs(0, 0), noise(2, 2), 3, rounding="ceil")
    assert moves == [(1, 1), (0, 2)]


@given(batch=batches())
@settings(deadline=None)
def test_planned_are_the_wanted_moves_into_domains_of_the_batch(batch: tuple[Tensor, Tensor, Tensor, int]) -> None:
    classes, domains, phi, n_domains = batch
    wanted = wanted_moves(classes, domains, phi, n_domains)
    assert planned_moves(classes, domains, phi, n_domains) == [move for move in wanted if move[1] in domains.tolist()]


def test_moves_into_a_domain_absent_from_the_batch_are_left_out() -> None:
    classes, domains, phi = longs(0, 0, 0, 1), longs(0, 0, 0, 1), longs(0, 1, 3, 0)[:, None].float()
    assert wanted_moves(classes, domains, phi, 3) == [(1, 1), (2, 2)]
    assert planned_moves(classes, domains, phi, 3) == [(1, 1)]


@pytest.mark.parametrize("n_domains", [1, 3])
def test_an_empty_batch_has_no_moves(n_domains: int) -> None:
    assert planned_moves(longs(), longs(), torch.zeros(0, 4), n_domains) == []


def test_one_domain_has_no_moves() -> None:
    assert planned_moves(longs(0, 0, 1), longs(0, 0, 0), noise(3, 2), 1) == []


def test_random_selection_follows_its_generator() -> None:
    def moves(seed: int) -> Moves:
        classes = torch.zeros(12, dtype=torch.int64)
        return wanted_moves(classes, classes, noise(12, 2), 3, selection="random", draws=seeded(seed))

    assert moves(1) == moves(1)
    assert len({tuple(moves(seed)) for seed in range(8)}) > 1


def test_random_selection_takes_every_sample_equally_often() -> None:
    draws, zeros = seeded(), torch.zeros(4, dtype=torch.int64)
    taken = Counter(
        wanted_moves(zeros, zeros, noise(4, 2), 4, selection="random", draws=draws)[0][0] for _ in range(800)
    )
    assert set(taken) == {0, 1, 2, 3}
    assert max(taken.values()) - min(taken.values()) < 100


# who lends


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 99))
@settings(deadline=None)
def test_lenders_are_two_different_members_where_there_are_two(sizes: list[int], seed: int) -> None:
    domains = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))[
        seeded(seed).permutation(sum(sizes))
    ]
    to_domains = torch.arange(len(sizes)).repeat(5)
    first, second = lenders(domains, to_domains, seeded(seed))
    assert torch.equal(domains[first], to_domains)
    assert torch.equal(domains[second], to_domains)
    assert torch.equal(first != second, torch.tensor(sizes)[to_domains] > 1)


def test_every_ordered_pair_of_members_lends_equally_often() -> None:
    domains, moves = longs(1, 0, 1, 1), torch.ones(6000, dtype=torch.int64)
    first, second = lenders(domains, moves, seeded())
    pairs = Counter(zip(first.tolist(), second.tolist(), strict=True))
    assert set(pairs) == {(0, 2), (0, 3), (2, 0), (2, 3), (3, 0), (3, 2)}
    assert all(abs(count - 1000) < 150 for count in pairs.values())


def test_a_domain_whose_number_is_missing_between_others_does_not_shift_the_lenders() -> None:
    first, second = lenders(longs(0, 2, 2), longs(2, 0), seeded())
    assert {first[0].item(), second[0].item()} == {1, 2}
    assert first[1].item() == second[1].item() == 0


# Eq. 6


def plain_balanced(features: Tensor, samples: Tensor, first: Tensor, second: Tensor, strength: Tensor) -> Tensor:
    """Eq. 6, letter by letter: lambda of s1' and 1 - lambda of s2' of the same rank, where the content stood."""
    maps = features.double().flatten(2).tolist()
    after = [[list(channel) for channel in sample] for sample in maps]
    for s, one, other, share in zip(samples.tolist(), first.tolist(), second.tolist(), strength.tolist(), strict=True):
        for c, content in enumerate(maps[s]):
            tau = sorted(range(len(content)), key=content.__getitem__)
            for place, low, high in zip(tau, sorted(maps[one][c]), sorted(maps[other][c]), strict=True):
                after[s][c][place] = share * low + (1 - share) * high
    return torch.tensor(after, dtype=torch.float64).view(features.shape)


def test_a_moved_sample_keeps_its_order_and_takes_the_mixed_values() -> None:
    features = torch.tensor([[3.0, 1.0, 2.0], [10.0, 30.0, 20.0], [60.0, 40.0, 50.0]]).view(3, 1, 1, 3)
    after = balanced(features, longs(0), longs(1), longs(2), torch.tensor([0.25]))
    assert after.flatten(1).tolist() == [[52.5, 32.5, 42.5], [10, 30, 20], [60, 40, 50]]


@given(
    shape=st.tuples(st.integers(3, 6), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(LAYOUTS),
    scale=st.sampled_from([1e-4, 1.0, 1e3]),
    coarse=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_balanced_features_are_those_of_the_plain_formula(
    shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format, scale: float, coarse: bool, seed: int
) -> None:
    features = noise(*shape, seed=seed)
    features = ((features.round() if coarse else features) * scale).to(dtype).contiguous(memory_format=layout)
    samples, first, second = longs(0, 2), longs(1, 0), longs(2, 1)
    strength = torch.rand(2, generator=torch.Generator().manual_seed(seed))
    after = balanced(features, samples, first, second, strength)
    rough = 2 * torch.finfo(dtype).eps
    expected = plain_balanced(features, samples, first, second, strength)
    torch.testing.assert_close(after.double(), expected, rtol=rough, atol=rough * scale * 4)
    assert after.dtype == dtype
    assert after.is_contiguous(memory_format=layout)


def test_samples_that_do_not_move_stay_to_the_last_bit() -> None:
    features = noise(4, 2, 3, 3).float()
    features[2, 0, 0, 0] = -0.0
    after = balanced(features, longs(1), longs(0), longs(3), torch.tensor([0.5]))
    unmoved = [0, 2, 3]
    assert torch.equal(after[unmoved].view(torch.int32), features[unmoved].view(torch.int32))


def test_a_shifted_sample_lends_the_style_it_had_before() -> None:
    features = noise(3, 2, 3, 3)
    after = balanced(features, longs(0, 1), longs(1, 0), longs(1, 0), torch.tensor([0.3, 0.3]))
    assert torch.equal(after[0].flatten(1).sort().values, features[1].flatten(1).sort().values)
    assert torch.equal(after[1].flatten(1).sort().values, features[0].flatten(1).sort().values)


def test_without_moves_the_very_same_tensor_comes_back() -> None:
    features = noise(2, 2, 3, 3)
    assert balanced(features, longs(), longs(), longs(), torch.zeros(0)) is features


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_of_a_thousand_stays_finite(dtype: torch.dtype) -> None:
    features = (noise(3, 2, 14, 14) * 1e3).to(dtype)
    assert balanced(features, longs(0), longs(1), longs(2), torch.tensor([0.1])).isfinite().all()


def test_half_precision_keeps_a_lambda_near_1() -> None:
    features = torch.tensor([0.0, 1.0, 257.0], dtype=torch.bfloat16).view(3, 1, 1, 1)
    after = balanced(features, longs(0), longs(1), longs(2), torch.tensor([0.999]))
    assert after[0].item() == torch.tensor(1.256, dtype=torch.bfloat16).item()


def test_nan_of_another_sample_does_not_spread() -> None:
    features = noise(4, 2, 3, 3)
    features[3] = math.nan
    assert balanced(features, longs(0), longs(1), longs(2), torch.tensor([0.5]))[:3].isfinite().all()


def gradient_of(features: Tensor, weight: Tensor, share: float, detach_style: bool) -> Tensor:
    leaf = features.clone().requires_grad_()
    after = balanced(leaf, longs(0), longs(1), longs(2), torch.tensor([share]), detach_style)
    (gradient,) = torch.autograd.grad((after * weight).sum(), leaf)
    return gradient


def in_ranks_of(ranks: Tensor, content: Tensor, weight: Tensor) -> Tensor:
    """The weight that stands where `content` has a rank, put where `ranks` has it."""
    placed = torch.empty_like(weight)
    return placed.scatter(-1, ranks.argsort(dim=-1), weight.gather(-1, content.argsort(dim=-1)))


def test_the_gradient_is_1_to_the_content_and_lambda_and_1_minus_lambda_to_the_lenders() -> None:
    features, weight = noise(4, 2, 3, 3), noise(4, 2, 3, 3, seed=1)
    gradient = gradient_of(features, weight, 0.3, detach_style=False)
    content, one, other = features[:3].flatten(2)
    lent = weight[0].flatten(1)
    torch.testing.assert_close(gradient[0], weight[0])
    torch.testing.assert_close(gradient[1].flatten(1), weight[1].flatten(1) + 0.3 * in_ranks_of(one, content, lent))
    torch.testing.assert_close(gradient[2].flatten(1), weight[2].flatten(1) + 0.7 * in_ranks_of(other, content, lent))
    torch.testing.assert_close(gradient[3], weight[3])


def test_a_detached_style_leaves_every_sample_its_own_gradient() -> None:
    features, weight = noise(4, 2, 3, 3), noise(4, 2, 3, 3, seed=1)
    torch.testing.assert_close(gradient_of(features, weight, 0.3, detach_style=True), weight)


def test_the_gradient_to_the_lenders_is_that_of_the_numbers() -> None:
    content = noise(1, 2, 2, 3)

    def moved(lent: Tensor) -> Tensor:
        features = torch.cat([content, lent])
        return balanced(features, longs(0), longs(1), longs(2), torch.tensor([0.3]))

    assert torch.autograd.gradcheck(moved, noise(2, 2, 2, 3, seed=1).requires_grad_())


# what is refused


@pytest.mark.parametrize(("rounding", "selection"), [("floor", "random"), ("whole", "nearest")])
def test_a_choice_there_is_not_is_refused_with_those_there_are(rounding: str, selection: str) -> None:
    with pytest.raises(ValueError, match=r"is one of '(whole', 'ceil|least_missed', 'random)'; got '(floor|nearest)'"):
        expect_choices(rounding, selection)


REFUSED = {
    "selection is one of": "zeros, zeros, phi, 2, selection='nearest'",
    "rounding is one of": "zeros, zeros, phi, 2, rounding='floor'",
    "3 classes and 2 domains": "zeros, zeros[:2], phi, 2",
    "classes is one integer a sample, [B]; got torch.float32 [3]": "zeros.float(), zeros, phi, 2",
    "domains is one integer a sample, [B]; got torch.int64 [3, 1]": "zeros, zeros[:, None], phi, 2",
    "classes is a tensor of one integer a sample, [B]; got list": "[0, 0, 0], zeros, phi, 2",
    "[3, 2C]; got [2, 4]": "zeros, zeros, phi[:2], 2",
    "[3, 2C]; got [3]": "zeros, zeros, phi[:, 0], 2",
    "0 to 1; got 0 to 2": "zeros, torch.arange(3), phi, 2",
    "0 to 1; got -1 to -1": "zeros, zeros - 1, phi, 2",
}


def test_what_cannot_be_planned_is_refused_with_what_came(plain_python: Callable[[str], str]) -> None:
    calls = ", ".join(f"lambda: planned_moves({arguments})" for arguments in REFUSED.values())
    said = plain_python(f"""
import json
import torch
from styleshift.style.balancing import planned_moves

zeros, phi, said = torch.zeros(3, dtype=torch.int64), torch.zeros(3, 4), []
for call in ({calls}):
    try:
        call()
    except (ValueError, TypeError) as error:
        said.append(str(error))
print(json.dumps(said))
""")
    for expected, message in zip(REFUSED, json.loads(said), strict=True):
        assert expected in message


# how long it takes


def test_planning_a_batch_costs_less_than_3_percent_of_a_training_step(plain_python: Callable[[str], str]) -> None:
    share = plain_python("""
import os
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin while they wait would be counted as work
import time
import torch
from styleshift.backbones.resnet import ResNet
from styleshift.style.balancing import wanted_moves
from styleshift.style.statistics import style_of

torch.set_num_threads(2)

def cost(work, times):
    work()
    before = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - before) / times

model, images = ResNet("18", 7), torch.randn(16, 3, 112, 112)
features = torch.randn(128, 64, 28, 28)  # after block 1
classes, domains = torch.randint(7, (128,)), torch.randint(3, (128,))
step_of_16 = cost(lambda: torch.nn.functional.cross_entropy(model(images), classes[:16]).backward(), 1)
planning = cost(lambda: wanted_moves(classes, domains, style_of(features).phi, 3), 10)
print(planning / (128 / 16 * step_of_16))
""")
    assert float(share) < 0.03
