import threading
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from storage.directory.directories import Directories
from storage.directory.models import RESEARCHERS, Added, Directory, Item, Record
from storage.library import Library
from storage.models import Context, Identity, SearchFilter

ANN = Identity("ann")
SHARED = Item(text="Boyle T, Lee A. Herons. Birds. 2020.", title="Herons", year=2020)
BOYLE = Record(
    key="boyle",
    name="Theresa Boyle",
    groups={"department": ("Ornithology",)},
    texts={"overview": "Wading birds."},
    facts={"title": "Professor"},
    items={"publications": (SHARED, Item(text="Boyle T. Reeds. 2018.", year=2018))},
    link="https://people.example/boyle",
)
LEE = Record(
    key="lee",
    name="Ann Lee",
    groups={"department": ("Botany",)},
    items={"publications": (replace(SHARED, text="BOYLE T, Lee A: Herons. Birds, 2020"),)},
)


def _items(library: Library, identity: Identity = ANN) -> dict[str, Context]:
    wanted = SearchFilter(raw_types=("researchers.publications",))
    return {each.title: each for each in library.shelf(identity).contexts(wanted, 100)}


def _names(directories: Directories) -> set[str]:
    found = {name: directories.search_names(RESEARCHERS, name, 5) for name in ("Boyle", "Lee")}
    return {each.entry.name for names in found.values() for each in names.records if each.how}


@pytest.fixture
def directories(library: Library) -> Directories:
    return library.shelf(ANN).directories


def test_the_same_import_again_changes_nothing(library: Library, directories: Directories) -> None:
    assert directories.add(RESEARCHERS, [BOYLE, LEE]) == Added(added=2)
    before = {each.id for each in library.shelf(ANN).contexts(SearchFilter(), 100)}
    assert directories.add(RESEARCHERS, [LEE, BOYLE]) == Added(unchanged=2)
    assert {each.id for each in library.shelf(ANN).contexts(SearchFilter(), 100)} == before
    assert directories.count(RESEARCHERS) == 2


def test_what_several_have_written_is_stored_once(
    library: Library, directories: Directories
) -> None:
    directories.add(RESEARCHERS, [BOYLE, LEE])
    items = _items(library)
    assert len(items) == 2
    assert items["Herons"].metadata == {"owner": ["boyle", "lee"], "title": "Herons", "year": 2020}


def test_a_changed_record_takes_its_items_along(library: Library, directories: Directories) -> None:
    directories.add(RESEARCHERS, [BOYLE, LEE])
    kept = _items(library)["Herons"].id
    changed = replace(BOYLE, items={"publications": (Item(text="Boyle T. Mud. 2021.", year=2021),)})
    assert directories.add(RESEARCHERS, [changed]) == Added(replaced=1)
    items = _items(library)
    assert set(items) == {"Herons", "Boyle T. Mud. 2021."}
    assert items["Herons"].id == kept
    assert items["Herons"].metadata["owner"] == ["lee"]
    directories.add(RESEARCHERS, [replace(LEE, items={})])
    assert set(_items(library)) == {"Boyle T. Mud. 2021."}


def test_an_item_that_is_known_better_is_replaced(
    library: Library, directories: Directories
) -> None:
    directories.add(RESEARCHERS, [BOYLE, LEE])
    better = replace(SHARED, details={"journal": "Birds"})
    directories.add(RESEARCHERS, [replace(BOYLE, items={"publications": (better,)})])
    (item,) = _items(library).values()
    assert item.metadata["journal"] == "Birds"
    assert item.metadata["owner"] == ["boyle", "lee"]


def test_an_item_that_was_forgotten_comes_back_with_the_next_import(
    library: Library, directories: Directories
) -> None:
    directories.add(RESEARCHERS, [BOYLE])
    library.shelf(ANN).forget([_items(library)["Herons"].id])
    assert directories.add(RESEARCHERS, [BOYLE]) == Added(replaced=1)
    assert "Herons" in _items(library)


def test_a_full_file_removes_those_that_it_lacks(
    library: Library, directories: Directories
) -> None:
    directories.add(RESEARCHERS, [BOYLE, LEE])
    assert directories.add(RESEARCHERS, [LEE]) == Added(unchanged=1)
    assert directories.add(RESEARCHERS, [LEE], prune=True) == Added(unchanged=1, removed=1)
    assert _names(directories) == {"Ann Lee"}
    assert _items(library)["Herons"].metadata["owner"] == ["lee"]


def test_a_directory_is_removed_with_its_items(library: Library, directories: Directories) -> None:
    other = Directory(name="others", noun="other", items=("publications",))
    directories.add(RESEARCHERS, [BOYLE, LEE])
    directories.add(other, [BOYLE])
    assert directories.remove(RESEARCHERS) == 2
    assert directories.count(RESEARCHERS) == 0
    assert not _items(library)
    assert directories.count(other) == 1
    assert directories.search_items(other, "publications", "herons", 5).items


def test_one_key_of_two_names_is_two_records(directories: Directories) -> None:
    page = "https://people.example/lab"
    both = [replace(BOYLE, key=page), replace(LEE, key=page)]
    assert directories.add(RESEARCHERS, both) == Added(added=2)
    assert _names(directories) == {"Theresa Boyle", "Ann Lee"}
    assert directories.add(RESEARCHERS, both) == Added(unchanged=2)


def test_one_key_of_one_name_is_one_record_that_says_what_both_say(
    directories: Directories,
) -> None:
    again = replace(
        BOYLE, name="Boyle, Theresa", groups={"department": ("Ecology",)}, facts={"room": "7"}
    )
    added = directories.add(RESEARCHERS, [BOYLE, again])
    assert added == Added(added=1, merged=("Boyle, Theresa",))
    (found,) = directories.search_names(RESEARCHERS, "Theresa Boyle", 5).records
    assert found.entry.groups == {"department": ("Ornithology", "Ecology")}
    assert found.entry.facts == {"title": "Professor", "room": "7"}
    assert directories.add(RESEARCHERS, [BOYLE, again]).unchanged == 1


def test_nobody_else_sees_a_directory(library: Library, directories: Directories) -> None:
    bobs = library.shelf(Identity("bob")).directories
    phones = library.shelf(Identity("ann", "phone")).directories
    directories.add(RESEARCHERS, [BOYLE])
    bobs.add(RESEARCHERS, [LEE])
    assert _names(directories) == {"Theresa Boyle"}
    assert _names(bobs) == {"Ann Lee"}
    assert phones.count(RESEARCHERS) == 0
    assert phones.add(RESEARCHERS, [BOYLE]) == Added(added=1)
    assert directories.count(RESEARCHERS) == 1  # the same key on two devices is one person
    assert bobs.remove(RESEARCHERS) == 1
    assert directories.count(RESEARCHERS) == 1


def test_two_imports_at_once_lose_nothing(
    library_of: Callable[..., Library], world: ModuleType
) -> None:
    sides = [library_of(world.HashEmbedder()) for _ in range(2)]
    shared = tuple(Item(text=f"Paper {at}. 2020.", year=2020) for at in range(5))
    failed: list[Exception] = []

    def bring(library: Library, side: int) -> None:
        records = [
            Record(key=f"{side}-{at}", name=f"Side{side} N{at}", items={"publications": shared})
            for at in range(300)
        ]
        try:
            library.shelf(ANN).directories.add(RESEARCHERS, records)
        except Exception as error:  # noqa: BLE001  # it is shown below
            failed.append(error)

    threads = [
        threading.Thread(target=bring, args=(library, side)) for side, library in enumerate(sides)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for library in sides:
        assert library.shelf(ANN).directories.count(RESEARCHERS) == 600
        items = _items(library)
        assert len(items) == 5
        assert {len(each.metadata["owner"]) for each in items.values()} == {600}


def test_an_import_by_another_process_is_seen_at_once(
    library_of: Callable[..., Library], world: ModuleType
) -> None:
    here, there = (library_of(world.HashEmbedder()).shelf(ANN).directories for _ in range(2))
    assert not here.search_names(RESEARCHERS, "Boyle", 5).records
    there.add(RESEARCHERS, [BOYLE])
    assert _names(here) == {"Theresa Boyle"}
    there.add(RESEARCHERS, [replace(BOYLE, name="Theresa Lee")])
    assert _names(here) == {"Theresa Lee"}
    there.remove(RESEARCHERS)
    assert not _names(here)
