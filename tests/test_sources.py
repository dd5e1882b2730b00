"""The sources' styles: one pass, its merge, its sample, its file."""

import copy
import math
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

import styleshift.sources
from styleshift.sources import RESERVOIR, SourceStyles, sources_of

Batches = list[tuple[Tensor, object]]
TENSORS = ("counts", "mean", "variance", "sample", "sample_domain", "sample_key")


class Tapped(nn.Module):
    """Gives images as its features at `tap`; counts what runs after it."""

    def __init__(self) -> None:
        super().__init__()
        self.tap = nn.Identity()
        self.after = nn.Identity()
        self.calls_after = [0]
        self.after.register_forward_hook(self._count)

    def _count(self, *seen: object) -> None:
        self.calls_after[0] += 1

    def forward(self, images: Tensor) -> Tensor:
        return self.after(self.tap(images)).mean(dim=(2, 3))


class Normed(nn.Module):
    """A network whose batch norm remembers whether it ran in train mode."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))

    def forward(self, images: Tensor) -> Tensor:
        return self.block(images).mean(dim=(2, 3))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def measured(batches: object) -> SourceStyles:
    return sources_of(Tapped(), batches, "tap")  # type: ignore[arg-type]  # any iterable


def plain_phi(image: Tensor) -> list[float]:
    """Phi of one [C, H, W] in plain Python."""
    means, stds = [], []
    for channel in image.double().tolist():
        values = [value for line in channel for value in line]
        mean = math.fsum(values) / len(values)
        means.append(mean)
        stds.append(math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values) + 1e-6))
    return means + stds


def plain_moments(rows: list[list[float]]) -> tuple[list[float], list[float]]:
    """Mean and biased variance of every column."""
    means = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    spreads = [
        math.fsum((value - mean) ** 2 for value in column) / len(rows)
        for column, mean in zip(zip(*rows, strict=True), means, strict=True)
    ]
    return means, spreads


def expect_same(one: SourceStyles, other: SourceStyles, within: float = 0.0) -> None:
    assert (one.at, one.domains) == (other.at, other.domains)
    for name in ("counts", "sample", "sample_domain", "sample_key"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    torch.testing.assert_close(one.mean, other.mean, rtol=0, atol=within)
    torch.testing.assert_close(one.variance, other.variance, rtol=0, atol=within)


# --- what it measures


def test_it_gives_the_mean_and_variance_of_phi_of_every_domain() -> None:
    images = drawn(23, 3, 4, 5).double() * 3 + 7
    domains = [("photo", "art", "sketch")[i * i % 3] for i in range(23)]
    cuts = [0, 5, 6, 13, 23]
    batches = [(images[a:b], domains[a:b]) for a, b in pairwise(cuts)]

    sources = measured(batches)

    assert sources.domains == ("art", "photo")
    for row, domain in enumerate(sources.domains):
        of_domain = [plain_phi(image) for image, name in zip(images, domains, strict=True) if name == domain]
        mean, variance = plain_moments(of_domain)
        assert sources.counts[row] == len(of_domain)
        torch.testing.assert_close(sources.mean[row], torch.tensor(mean, dtype=torch.float64), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(
            sources.variance[row], torch.tensor(variance, dtype=torch.float64), rtol=1e-9, atol=1e-12
        )


def test_it_gives_the_centres_that_one_can_compute_in_the_head() -> None:
    images = torch.tensor([[[[1.0, 3.0]]], [[[5.0, 7.0]]], [[[10.0, 10.0]]]])
    sources = measured([(images, [0, 0, 1])])
    torch.testing.assert_close(sources.style.mean, torch.tensor([[4.0], [10.0]]))
    torch.testing.assert_close(sources.style.std, torch.tensor([[1.0], [1e-3]]))


@pytest.fixture
def _one_thread() -> Iterator[None]:
    """Many small operations are faster so."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("_one_thread")
def test_it_stays_exact_for_a_million_images_far_from_zero() -> None:
    offset, count, size = 4096.0, 1_000_000, 25_000
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(count, generator=generator) + offset  # float32, as features are
    sources = measured(
        (part.view(-1, 1, 1, 1), torch.zeros(len(part), dtype=torch.long)) for part in values.split(size)
    )

    exact = values.numpy().astype(np.float64)
    assert sources.counts.tolist() == [count]
    assert float(sources.mean[0, 0]) == pytest.approx(math.fsum(exact) / count, rel=1e-13)
    assert float(sources.variance[0, 0]) == pytest.approx(float(np.var(exact)), rel=1e-9)

    # what this test is there to refuse: a running float32 E[x²] - E[x]²
    first, second = np.float32(0), np.float32(0)
    for part in values.split(size):
        first += part.sum().numpy()
        second += part.square().sum().numpy()
    naive = float(second / np.float32(count) - (first / np.float32(count)) ** 2)
    assert abs(naive - float(np.var(exact))) > 0.1


def test_it_keeps_the_precision_of_a_float64_model() -> None:
    images = torch.full((2, 1, 1, 2), 1 / 3, dtype=torch.float64)
    assert float(measured([(images, [0, 0])]).mean[0, 0]) == 1 / 3


def test_it_measures_a_half_precision_model_in_float32() -> None:
    images = torch.full((2, 1, 2, 2), 1000.0, dtype=torch.float16)  # its squares overflow in half precision
    sources = measured([(images, [0, 1])])
    assert sources.style.mean.tolist() == [[1000.0], [1000.0]]
    assert sources.style.std.isfinite().all()


def test_it_takes_bfloat16_models() -> None:
    model = Normed().to(torch.bfloat16)
    assert sources_of(model, [(drawn(2, 3, 6, 6).bfloat16(), [0, 1])], "block").mean.dtype == torch.float64


def test_it_runs_nothing_after_the_layer() -> None:
    model = Tapped()
    sources_of(model, [(drawn(2, 3, 4, 4), [0, 1])] * 3, "tap")
    assert model.calls_after == [0]


def test_it_measures_in_eval_mode_and_leaves_a_training_model_as_it_was() -> None:
    model = Normed().train()
    before = copy.deepcopy(model.state_dict())
    images = drawn(6, 3, 8, 8) + 5

    sources = sources_of(model, [(images, [0] * 6)], "block")

    assert all(part.training for part in model.modules())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    model.eval()
    with torch.no_grad():
        expected = model.block(images).mean(dim=(2, 3)).mean(dim=0)
    torch.testing.assert_close(sources.style.mean[0], expected)


def test_it_leaves_no_hook_behind() -> None:
    model = Normed()
    sources_of(model, [(drawn(2, 3, 6, 6), [0, 1])], "block")
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


def test_it_needs_no_gradient() -> None:
    assert not measured([(drawn(2, 3, 4, 4).requires_grad_(), [0, 1])]).mean.requires_grad


# --- how batches may look


@pytest.mark.parametrize(
    ("domains", "names"),
    [
        (torch.tensor([7, 2, 7]), (2, 7)),
        (torch.tensor([7, 2, 7], dtype=torch.uint8), (2, 7)),
        (np.array([7, 2, 7], dtype=np.int32), (2, 7)),
        ([7, 2, 7], (2, 7)),
        ([np.int64(7), torch.tensor(2), 7], (2, 7)),
        (["b", "a", "b"], ("a", "b")),
        (("b", "a", "b"), ("a", "b")),
        (np.array(["b", "a", "b"]), ("a", "b")),
        (np.array(["b", "a", "b"], dtype=object), ("a", "b")),
        ([-3, 10, -3], (-3, 10)),
    ],
)
def test_it_sorts_domains_of_any_kind_and_keeps_them_as_plain_names(domains: object, names: tuple[object, ...]) -> None:
    sources = measured([(drawn(3, 2, 2, 2), domains)])
    assert sources.domains == names
    assert {type(name) for name in sources.domains} == {type(names[0])}
    assert sorted(sources.counts.tolist()) == [1, 2]


@pytest.mark.parametrize("kind", [tuple, list])
def test_a_pair_means_images_and_domains_and_a_triple_has_them_last(kind: type) -> None:
    images = drawn(2, 2, 2, 2)
    pair, triple = kind((images, [0, 1])), kind((images, [5, 5], [0, 1]))
    expect_same(measured([pair]), measured([triple]))


def test_it_reads_images_alone_where_it_needs_no_labels() -> None:
    images = drawn(4, 2, 2, 2)
    alone = sources_of(Tapped(), [images], "tap", labelled=False)
    with_anything = sources_of(Tapped(), [(images, object())], "tap", labelled=False)
    assert alone.domains == ("all",)
    expect_same(alone, with_anything)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (torch.zeros(2, 3, 4, 4), "clusters="),
        ((torch.zeros(2, 3, 4, 4),), "clusters="),
        ((torch.zeros(2, 3, 4, 4), [0, 1], [0, 1], [0, 1]), "tuple of Tensor, list, list, list"),
        ((torch.zeros(2, 3, 4, 4), [0]), "1 domains for 2 images"),
        ((torch.zeros(2, 3, 4, 4), [0.0, 1.0]), "integer or a string, one an image; got 0.0"),
        ((torch.zeros(2, 3, 4, 4), [True, False]), "got True"),
        ((torch.zeros(2, 3, 4, 4), torch.tensor([[0], [1]])), r"got \[0\]"),
        ((torch.zeros(2, 3, 4, 4), torch.tensor(1)), "one an image, in a tensor, array or list; got 1"),
        ((torch.zeros(2, 3, 4, 4), "ab"), "got 'ab'"),
        ((torch.zeros(2, 3, 4, 4), None), "got None"),
        ((torch.zeros(2, 3, 4, 4), ["a", 1]), "all integers or all strings; got 1 and 'a'"),
        ((torch.zeros(3, 4, 4), 0), r"one \[3, 4, 4\]"),
        ((torch.zeros(2, 3, 4, 4, dtype=torch.uint8), [0, 1]), "floating point .* got torch.uint8"),
        ((torch.zeros(3), [0, 1, 2]), r"got torch.float32 \[3\]"),
        ((np.zeros((2, 3, 4, 4)), [0, 1]), "the images a tensor; got tuple of ndarray, list"),
        ({"images": torch.zeros(2, 3, 4, 4)}, "got dict"),
        ((), "got tuple of nothing"),
    ],
)
def test_it_says_what_a_batch_needs_to_be(batch: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measured([batch])


def test_domains_of_both_kinds_in_different_batches_are_refused() -> None:
    images = drawn(1, 2, 2, 2)
    with pytest.raises(ValueError, match="all integers or all strings"):
        measured([(images, [0]), (images, ["photo"])])


def test_an_empty_pass_and_a_spent_generator_are_refused() -> None:
    spent: Iterator[object] = iter([])
    for nothing in ([], spent, [(torch.zeros(0, 3, 4, 4), [])]):
        with pytest.raises(ValueError, match="no image came"):
            measured(nothing)


def test_an_empty_batch_between_others_changes_nothing() -> None:
    full = (drawn(2, 3, 4, 4), [0, 1])
    expect_same(measured([full, (torch.zeros(0, 3, 4, 4), []), full]), measured([full, full]), within=1e-15)


def test_a_later_batch_of_other_channels_is_refused_with_its_number() -> None:
    with pytest.raises(ValueError, match=r"the first has 3, batch 1 \(from 0\) is \[2, 1, 4, 4\]"):
        measured([(drawn(2, 3, 4, 4), [0, 1]), (drawn(2, 1, 4, 4), [0, 1])])


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_an_image_that_is_no_number_is_refused_with_its_batch(broken: float) -> None:
    bad = drawn(3, 2, 4, 4)
    bad[1, 0, 2, 2] = broken
    with pytest.raises(ValueError, match=r"1 of 3 images in batch 1 .*'tap'"):
        measured([(drawn(3, 2, 4, 4), [0, 0, 1]), (bad, [0, 0, 1])])


def test_a_wrong_layer_is_answered_with_near_ones() -> None:
    with pytest.raises(KeyError, match="'tap'"):
        sources_of(Tapped(), [(drawn(2, 3, 4, 4), [0, 1])], "tapp")


# --- the merge of parts


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_partition_in_any_order_merges_to_the_single_pass(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 40))
    images = drawn(count, 2, 2, 3, seed=data.draw(st.integers(0, 99))) * 10 + 100
    domains = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    whole = measured([(images, domains)])

    order = data.draw(st.permutations(range(count)))
    cuts = sorted(data.draw(st.sets(st.integers(1, count - 1), max_size=6)))
    shards = [
        measured([(images[list(rows)], [domains[row] for row in rows])])
        for rows in (order[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True))
    ]
    merged = shards[0]
    for shard in shards[1:]:
        merged = shard.merged(merged) if data.draw(st.booleans()) else merged.merged(shard)

    expect_same(merged, whole, within=1e-12 * 100)
    torch.testing.assert_close(merged.mean, whole.mean, rtol=1e-12, atol=0)


def test_parts_may_know_different_domains() -> None:
    images = drawn(3, 2, 2, 2)
    merged = measured([(images[:2], [5, 1])]).merged(measured([(images[2:], [3])]))
    expect_same(merged, measured([(images, [5, 1, 3])]))


def test_many_small_batches_give_what_one_large_one_does() -> None:
    images, domains = drawn(70, 2, 2, 2), torch.arange(70) % 3
    singles = measured(zip(images.split(1), domains.split(1), strict=True))
    expect_same(singles, measured([(images, domains)]), within=1e-12)


def test_parts_of_different_layers_or_widths_do_not_merge() -> None:
    part = measured([(drawn(1, 2, 2, 2), [0])])
    wider = measured([(drawn(1, 3, 2, 2), [0])])
    with pytest.raises(ValueError, match="'tap' with 2 channels and 'tap' with 3"):
        part.merged(wider)


# --- the sample of Phi


def test_the_sample_is_every_image_of_few() -> None:
    images = drawn(7, 2, 3, 3)
    sources = measured([(images, [0, 1, 0, 1, 0, 1, 0])])
    expected = sorted([round(value, 4) for value in plain_phi(image)] for image in images)
    assert sorted([round(value, 4) for value in phi] for phi in sources.sample.double().tolist()) == expected
    assert sources.sample_domain.bincount().tolist() == [4, 3]


def test_the_sample_is_bounded_and_the_same_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(styleshift.sources, "RESERVOIR", 50)
    images, domains = drawn(400, 2, 2, 2), torch.arange(400) % 4
    order = torch.randperm(400, generator=torch.Generator().manual_seed(5))
    whole = measured([(images, domains)])
    shuffled = measured(zip(images[order].split(7), domains[order].split(7), strict=True))
    halves = measured([(images[:120], domains[:120])]).merged(measured([(images[120:], domains[120:])]))
    assert len(whole.sample) == 50
    expect_same(shuffled, whole, within=1e-12)
    expect_same(halves, whole, within=1e-12)


def test_the_sample_holds_ten_thousand_of_more() -> None:
    assert RESERVOIR == 10_000
    images = drawn(10_500, 1, 1, 2)
    assert measured(zip(images.split(500), torch.zeros(21, 500).long(), strict=True)).sample.shape == (10_000, 2)


def test_the_sample_is_drawn_without_regard_to_style(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(styleshift.sources, "RESERVOIR", 1_000)
    values = torch.linspace(0, 1, 20_000)
    sample = measured([(values.view(-1, 1, 1, 1), torch.zeros(20_000).long())]).sample[:, 0]
    # a uniform sample of 1,000: standard error .009 of the mean, .013 of a decile's share times ten
    assert float(sample.mean()) == pytest.approx(0.5, abs=0.04)
    assert torch.histc(sample, 10, 0, 1).sub(100).abs().max() < 45


def test_the_sample_depends_on_images_not_on_rounding_in_the_network() -> None:
    model, images = Normed().eval(), drawn(32, 3, 16, 16)
    one_by_one = sources_of(model, [(image[None], [0]) for image in images], "block")
    together = sources_of(model, [(images, [0] * 32)], "block")
    assert torch.equal(one_by_one.sample_key, together.sample_key)


def test_copies_of_an_image_in_two_domains_are_both_kept_in_any_order() -> None:
    image = drawn(1, 2, 2, 2)
    one, other = measured([(image, ["a"])]), measured([(image, ["b"])])
    expect_same(one.merged(other), other.merged(one))
    assert one.merged(other).sample_domain.tolist() == [0, 1]


def test_sampled_styles_are_of_different_images_and_follow_the_seed() -> None:
    sources = measured([(drawn(30, 2, 3, 3), [0] * 30)])
    few = sources.sampled_styles(5, seed=1)
    assert few.mean.shape == (5, 2)
    assert len({tuple(row) for row in few.phi.tolist()}) == 5
    assert all((row == sources.sample).all(dim=1).any() for row in few.phi)
    assert torch.equal(few.phi, sources.sampled_styles(5, seed=1).phi)
    assert not torch.equal(few.phi, sources.sampled_styles(5, seed=2).phi)


def test_sampled_styles_are_all_where_there_are_fewer() -> None:
    assert len(measured([(drawn(3, 2, 3, 3), [0] * 3)]).sampled_styles(100).mean) == 3


# --- pseudo-domains


def three_heaps() -> tuple[Tensor, list[int]]:
    """Images around the brightnesses 0, 50 and 100; heap 2 the largest, then 0."""
    heap = [0] * 5 + [1] * 3 + [2] * 9
    return drawn(17, 2, 4, 4) + 50.0 * torch.tensor(heap)[:, None, None, None], heap


def test_clusters_find_heaps_of_style_and_are_numbered_by_size() -> None:
    images, heap = three_heaps()
    clustered = measured([(images, [0] * 17)]).clustered(3)
    by_heap = measured([(images, heap)])
    assert clustered.domains == ("cluster 1", "cluster 2", "cluster 3")
    assert clustered.counts.tolist() == [9, 5, 3]
    torch.testing.assert_close(clustered.style.phi, by_heap.style.phi[[2, 0, 1]])


def test_clusters_are_the_same_whatever_the_order_and_labels() -> None:
    images = drawn(60, 2, 3, 3)
    order = random.Random(0).sample(range(60), 60)
    one = measured([(images, ["x"] * 60)]).clustered(4, seed=3)
    other = measured([(images[order[:20]], [1] * 20), (images[order[20:]], [2] * 40)]).clustered(4, seed=3)
    expect_same(one, other, within=1e-12)


def test_ten_clusters_sort_as_they_are_numbered() -> None:
    images = drawn(40, 1, 2, 2) + 100.0 * (torch.arange(40) % 10)[:, None, None, None]
    clustered = measured([(images, [0] * 40)]).clustered(10)
    assert (clustered.domains[0], clustered.domains[-1]) == ("cluster 01", "cluster 10")


@pytest.mark.parametrize("clusters", [0, 4])
def test_clusters_are_at_least_one_and_at_most_the_images(clusters: int) -> None:
    with pytest.raises(ValueError, match=f"asked for {clusters}"):
        measured([(drawn(3, 2, 3, 3), [0] * 3)]).clustered(clusters)


def test_more_clusters_than_styles_are_refused() -> None:
    with pytest.raises(ValueError, match="3 clusters need as many different styles; there are 1"):
        measured([(torch.ones(5, 2, 3, 3), [0] * 5)]).clustered(3)


# --- the file


@pytest.fixture
def sources() -> SourceStyles:
    return measured([(drawn(6, 2, 3, 3), ["b", "a", "b", "c", "a", "b"])])


def test_it_comes_back_from_its_file_as_it_was(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "deep" / "styles.safetensors")
    expect_same(SourceStyles.load(str(tmp_path / "deep" / "styles.safetensors")), sources)


def test_integer_domains_come_back_as_integers(tmp_path: Path) -> None:
    measured([(drawn(2, 2, 3, 3), [10, -2])]).save(tmp_path / "s")
    assert SourceStyles.load(tmp_path / "s").domains == (-2, 10)


def test_loaded_parts_merge_on(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    expect_same(SourceStyles.load(tmp_path / "s").merged(sources), sources.merged(sources))


def test_its_file_is_safetensors_with_a_version(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    with safe_open(tmp_path / "s", framework="pt") as file:
        assert set(file.keys()) == set(TENSORS)
        assert (file.metadata()["format"], file.metadata()["version"]) == ("styleshift.styles", "1")


def test_a_failed_save_leaves_the_old_file(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    with pytest.raises(TypeError):
        sources.save(tmp_path / "s", further=object())
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    expect_same(SourceStyles.load(tmp_path / "s"), sources)


def rewritten(path: Path, tensors: dict[str, Tensor], about: dict[str, str]) -> Path:
    """The file at `path` with some tensors and some of its header replaced."""
    with safe_open(path, framework="pt") as file:
        kept = {name: file.get_tensor(name) for name in TENSORS}
        header = file.metadata()
    save_file({**kept, **tensors}, path, {**header, **about})
    return path


def test_a_newer_file_asks_for_an_update(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    with pytest.raises(ValueError, match=r"version 4, .* reads up to 3: update"):
        SourceStyles.load(rewritten(tmp_path / "s", {}, {"version": "4"}))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file of styles at .*nowhere"):
        SourceStyles.load(tmp_path / "nowhere")


def test_a_folder_is_no_file_of_styles(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no safetensors file"):
        SourceStyles.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no safetensors", b"\x80\x04pickle"])
def test_a_file_of_another_kind_is_said(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(ValueError, match="no safetensors file"):
        SourceStyles.load(tmp_path / "s")


def test_half_a_file_is_said(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-40])
    with pytest.raises(ValueError, match="not a whole one"):
        SourceStyles.load(tmp_path / "s")


def test_somebody_elses_safetensors_are_said(tmp_path: Path) -> None:
    save_file({"conv1.weight": torch.zeros(2)}, tmp_path / "weights.safetensors")
    with pytest.raises(ValueError, match="holds no styles"):
        SourceStyles.load(tmp_path / "weights.safetensors")


@pytest.mark.parametrize(
    "tensors",
    [{"mean": torch.zeros(2, 4).double()}, {"sample": torch.zeros(6, 2)}, {"counts": torch.ones(4).long()}],
)
def test_tensors_that_do_not_fit_together_are_said(
    sources: SourceStyles, tmp_path: Path, tensors: dict[str, Tensor]
) -> None:
    sources.save(tmp_path / "s")
    with pytest.raises(ValueError, match="is damaged"):
        SourceStyles.load(rewritten(tmp_path / "s", tensors, {}))


def test_a_missing_tensor_is_said(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    with safe_open(tmp_path / "s", framework="pt") as file:
        about = file.metadata()
    save_file({"counts": sources.counts}, tmp_path / "s", about)
    with pytest.raises(ValueError, match="is damaged"):
        SourceStyles.load(tmp_path / "s")


def test_nan_in_a_file_is_said(sources: SourceStyles, tmp_path: Path) -> None:
    sources.save(tmp_path / "s")
    with pytest.raises(ValueError, match="NaN"):
        SourceStyles.load(rewritten(tmp_path / "s", {"mean": torch.full((3, 4), math.nan).double()}, {}))


def test_it_shows_itself_without_its_numbers(sources: SourceStyles) -> None:
    assert repr(sources) == "SourceStyles(at='tap', domains=('a', 'b', 'c'), counts=tensor([2, 3, 1]))"
