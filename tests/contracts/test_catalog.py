"""What holds for every dataset of the catalog: found, not listed."""

from pathlib import Path

import pytest

from styleshift import named
from styleshift.data import catalog
from styleshift.data.facts import Catalogued
from styleshift.data.roots import catalogued, known

EVERY = named.names(catalog)
PUBLISHED = known()


def entry_of(name: str) -> Catalogued:
    entry = catalogued(name)
    assert entry is not None
    return entry


@pytest.mark.parametrize("name", EVERY)
def test_it_is_a_dataset_that_can_be_built_and_loaded(name: str) -> None:
    assert isinstance(named.build(catalog, name), Catalogued)


@pytest.mark.parametrize("name", EVERY)
def test_a_place_that_is_not_there_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refusal:
        named.build(catalog, name).load(tmp_path / "absent")
    assert str(tmp_path / "absent") in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_its_folder_is_its_name(name: str) -> None:
    assert entry_of(name).facts.folder == name


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_counts_the_images_of_each_of_its_domains(name: str) -> None:
    facts = entry_of(name).facts
    assert tuple(facts.image_counts) == facts.names.domains
    assert facts.names.domains == tuple(sorted(facts.names.domains))


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_names_as_many_classes_as_it_has(name: str) -> None:
    facts = entry_of(name).facts
    assert len(facts.names.classes) in (0, facts.class_count)
    assert len(set(facts.names.classes)) == len(facts.names.classes)


@pytest.mark.parametrize("name", PUBLISHED)
def test_its_mirror_holds_what_it_counts(name: str) -> None:
    facts = entry_of(name).facts
    assert facts.mirror is None or facts.mirror.rows == sum(facts.image_counts.values())


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_says_where_it_is_from_and_on_what_terms(name: str) -> None:
    facts = entry_of(name).facts
    assert facts.title
    assert facts.page
    assert facts.licence


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_is_loaded_from_a_small_tree_of_its_layout(name: str, tmp_path: Path) -> None:
    facts = entry_of(name).facts
    if facts.dropped:
        pytest.skip(f"{name} is known image by image, and wants them all")
    classes = (facts.names.classes or ("aircraft_carrier", "zebra"))[:2]
    for domain in facts.names.domains:
        for class_ in classes:
            (tmp_path / domain / class_).mkdir(parents=True)
            (tmp_path / domain / class_ / "1.jpg").touch()
    dataset = entry_of(name).load(tmp_path)
    assert dataset.counts()[:, :2].tolist() == [[1, 1]] * len(facts.names.domains)


@pytest.mark.parametrize("name", PUBLISHED)
def test_too_few_domains_are_named_with_how_to_get_the_set(name: str, tmp_path: Path) -> None:
    facts = entry_of(name).facts
    (tmp_path / facts.names.domains[0]).mkdir()
    with pytest.raises(FileNotFoundError, match=f"no folder for {', '.join(facts.names.domains[1:])}\\. Get it"):
        entry_of(name).load(tmp_path)
