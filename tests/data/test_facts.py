"""What is known about a dataset without having it."""

from styleshift.data.facts import Facts, Mirror


def test_a_set_with_a_mirror_says_the_command_that_gets_it() -> None:
    facts = Facts(title="Toy", folder="toy", page="toy.org", mirror=Mirror("someone/toy", rows=1))
    assert facts.how.startswith("Get it with `styleshift data get toy`, or from toy.org")


def test_a_set_without_a_mirror_says_where_it_is_offered() -> None:
    assert Facts(title="Toy", folder="toy", page="toy.org").how == (
        "Get it from toy.org, and take it in with `styleshift data import FILE --as toy`."
    )


def test_a_set_that_is_made_says_which_extra_brings_its_images() -> None:
    assert Facts(title="Toy", packages="toybox").how == (
        "Get it with `pip install 'styleshift[demo]'`: its images come with toybox."
    )
