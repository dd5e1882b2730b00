"""Orders of test images, and methods that play them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from styleshift.adaptation.tent import Tent
from styleshift.adaptation.wrapping import Adapted, Sees
from styleshift.training import streams
from styleshift.training.streams import ORDERS, Labelled, answers, orders_for, play, stream

CLASSES = torch.arange(60) % 3
DOMAINS = torch.arange(60) // 20
NONE = torch.zeros(0, dtype=torch.int64)


@given(
    labels=st.lists(st.tuples(st.integers(0, 4), st.sampled_from([2, 5, 7])), min_size=1, max_size=40),
    size=st.integers(1, 9),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_every_order_shows_every_image_once(labels: list[tuple[int, int]], size: int, seed: int) -> None:
    classes, domains = torch.tensor(labels).T
    for order in orders_for(domains):
        if order != "long":
            batches = stream(order, classes, domains, batch_size=size, seed=seed)
            assert sorted(torch.cat(batches).tolist()) == list(range(len(labels)))
            assert all(len(batch) == (1 if order == "single" else size) for batch in batches[:-1])


def test_the_long_one_goes_on_until_its_length_and_shows_all_before_any_again() -> None:
    batches = stream("long", CLASSES, DOMAINS, batch_size=16, length=150)
    numbers = torch.cat(batches).tolist()
    assert len(numbers) == 150
    assert sorted(numbers[:60]) == sorted(numbers[60:120]) == list(range(60))
    assert numbers[:60] != numbers[60:120]


def test_its_length_is_ten_thousand_where_none_is_given() -> None:
    assert sum(map(len, stream("long", CLASSES, DOMAINS))) == 10_000


@pytest.mark.parametrize("order", ["iid", "single", "by-class"])
def test_domains_come_one_after_another(order: str) -> None:
    numbers = torch.cat(stream(order, CLASSES, DOMAINS))
    assert torch.equal(DOMAINS[numbers], DOMAINS)


def test_by_class_a_class_is_never_met_again_within_its_domain() -> None:
    numbers = torch.cat(stream("by-class", CLASSES, DOMAINS))
    changes = int((CLASSES[numbers].diff() != 0).sum())
    assert changes <= 3 * 3 - 1
    assert [len(set(run.tolist())) for run in torch.split(DOMAINS[numbers], 20)] == [1, 1, 1]


def test_mixed_batches_hold_several_domains() -> None:
    assert all(len(set(DOMAINS[batch].tolist())) == 3 for batch in stream("mixed", CLASSES, DOMAINS, batch_size=20))


def test_gradually_one_domain_gives_way_to_the_next() -> None:
    domains = torch.arange(3000) // 1000
    turn = domains[torch.cat(stream("gradual", domains, domains))].double()
    thirds = [part.mean() for part in torch.split(turn, 500)]
    assert thirds == sorted(thirds)
    assert set(turn[:300].tolist()) == {0}
    assert set(turn[-300:].tolist()) == {2}
    assert {0, 1} <= set(turn[900:1100].tolist())


def test_a_seed_gives_one_order() -> None:
    for order in ORDERS:
        once, again, other = (torch.cat(stream(order, CLASSES, DOMAINS, seed=seed)) for seed in (1, 1, 2))
        assert torch.equal(once, again)
        assert not torch.equal(once, other)


@pytest.mark.parametrize(
    ("order", "settings", "said"),
    [
        ("random", {}, "an order is one of iid, .*; got 'random'"),
        ("mixed", {"domains": torch.zeros(60, dtype=torch.int64)}, "'mixed' needs images of several domains"),
        ("iid", {"batch_size": 0}, "at least 1; got 0"),
        (
            "iid",
            {"classes": torch.zeros(0, dtype=torch.int64), "domains": torch.zeros(0, dtype=torch.int64)},
            "at least one",
        ),
    ],
)
def test_what_makes_no_stream_is_refused(order: str, settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stream(order, **{"classes": CLASSES, "domains": DOMAINS, **settings})  # type: ignore[arg-type]  # by name


class Counting(Adapted):
    """Says how many batches it has seen since its last reset."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), Sees(earlier_batches=True))
        self.batches = 0

    def reset(self) -> None:
        self.batches = 0

    def _answer(self, images: Tensor) -> Tensor:
        self.batches += 1
        return torch.nn.functional.one_hot(torch.full((len(images),), self.batches - 1), 99).double()


def black(numbers: Tensor) -> Tensor:
    return torch.zeros(len(numbers), 3, 2, 2)


def test_online_it_goes_on_and_episodic_it_begins_anew() -> None:
    method = Counting()
    batches = [black(torch.arange(2))] * 3
    method(batches[0])
    assert [said.tolist() for said in answers(method, batches)] == [[0, 0], [1, 1], [2, 2]]
    assert [said.tolist() for said in answers(method, batches, episodic=True)] == [[0, 0]] * 3


def test_a_method_is_handed_images_and_nothing_else() -> None:
    handed: list[object] = []

    class Curious(Counting):
        def forward(self, *args: object, **kwargs: object) -> Tensor:
            handed.extend([*args, *kwargs.values()])
            return super().forward(*args)

    labelled = Labelled(black, CLASSES, DOMAINS, ("a", "b", "c"))
    play("curious", Curious(), labelled, "by-class")
    assert all(isinstance(thing, Tensor) and thing.shape[1:] == (3, 2, 2) and not thing.any() for thing in handed)


def told(numbers: Tensor) -> Tensor:
    """Images that say their own class, except that of every fifth."""
    said = torch.where(numbers % 5 == 0, (CLASSES[numbers] + 1) % 3, CLASSES[numbers])
    return torch.nn.functional.one_hot(said, 3).float()[:, :, None, None]


class Reading(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)


@pytest.mark.parametrize("order", ["iid", "by-class", "mixed", "gradual", "single"])
def test_accuracy_is_judged_image_by_image_whatever_the_order(order: str) -> None:
    labelled = Labelled(told, CLASSES, DOMAINS, ("a", "b", "c"))
    played = play("reading", Adapted(Reading(), Sees()), labelled, order)
    assert played.accuracy == 0.8
    assert played.per_domain == {"a": 0.8, "b": 0.8, "c": 0.8}
    assert played.samples == 60
    assert played.over_time[-1].accuracy == 0.8
    assert played.over_time[-1].seen == 60


def test_over_time_it_is_the_share_so_far_and_since_the_point_before() -> None:
    hits = torch.tensor([True] * 60 + [False] * 40)
    moments = list(streams._moments(hits, hits.long()))
    assert len(moments) == 50
    assert [(it.seen, it.accuracy, it.recent, it.said_most) for it in (moments[0], moments[39])] == [
        (2, 1.0, 1.0, 1.0),
        (80, 0.75, 0.0, 1.0),
    ]


def test_of_few_samples_each_is_a_point() -> None:
    assert [it.seen for it in streams._moments(torch.ones(3).bool(), torch.zeros(3).long())] == [1, 2, 3]


def test_a_record_of_it_is_plain_json() -> None:
    labelled = Labelled(told, CLASSES, DOMAINS, ("a", "b", "c"))
    plain = play("reading", Adapted(Reading(), Sees()), labelled).plain()
    assert plain["sees"] == dict.fromkeys(plain["sees"], False)
    assert plain["over_time"][0].keys() == {"seen", "accuracy", "recent", "said_most"}


def test_a_learning_method_plays_the_same_stream_the_same_way_twice() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.Flatten())
    tent = Tent(0.5).wrap(net)
    labelled = Labelled(
        lambda numbers: told(numbers) + numbers[:, None, None, None] / 60, CLASSES, DOMAINS, ("a", "b", "c")
    )
    once, again = (
        play("tent", tent, labelled, batches=stream("iid", CLASSES, DOMAINS, batch_size=7)) for _ in range(2)
    )
    assert once == again
