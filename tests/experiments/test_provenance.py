"""What a result was made with."""

from styleshift.experiments.provenance import commit, versions


def test_it_names_what_computes() -> None:
    assert {"styleshift", "python", "torch", "numpy"} <= set(versions())


def test_a_commit_is_forty_letters_and_perhaps_dirty() -> None:
    found = commit()
    assert found is None or len(found.removesuffix("-dirty")) == 40
