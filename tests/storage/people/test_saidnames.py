"""A filter by a saved name finds whatever says it in its text, whichever was stored first."""

from __future__ import annotations

from types import ModuleType

import pytest

from storage.index import maintenance
from storage.library import Library
from storage.models import Identity, SearchFilter
from storage.people.models import EntityType, NewEntity

ANN = Identity("ann")


def _naming(library: Library, *names: str, identity: Identity = ANN) -> set[str]:
    """What a search, a listing and a count find alike."""
    shelf, criteria = library.shelf(identity), SearchFilter(entities=names)
    searched = {hit.context.raw_id for hit in shelf.search("heron", criteria, 100).hits}
    listed = {context.raw_id for context in shelf.contexts(criteria, 100)}
    assert searched == listed
    assert shelf.count(criteria) == len(listed)
    return searched


def test_it_does_not_matter_whether_the_name_or_the_text_came_first(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    shelf.add(world.new_document("before", "heron seen by Zo\u00eb M\u00fcller"))
    shelf.people.save_entity(NewEntity(name="Zoe Muller", entity_type=EntityType.PERSON))
    assert _naming(library, "Zo\u00eb M\u00fcller") == {"before"}
    shelf.add(world.new_document("after", "heron by zoe muller's lake"))
    shelf.add(world.new_document("other", "heron by Zoe and by Muller"))
    assert _naming(library, "Zoe Muller") == {"before", "after"}
    shelf.add(world.new_document("before", "heron seen by nobody"))
    shelf.delete_document("text", "after")
    assert _naming(library, "Zoe Muller") == set()


def test_every_name_of_an_entity_counts_as_soon_as_it_is_saved(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    shelf.add(world.new_document("one", "heron of Project Phoenix"))
    shelf.add(world.new_document("two", "heron: codename firebird"))
    shelf.people.save_entity(NewEntity(name="Project Phoenix"))
    assert _naming(library, "Project Phoenix") == {"one"}
    shelf.people.save_entity(NewEntity(name="Project Phoenix", aliases=("Firebird",)))
    assert _naming(library, "Project Phoenix") == _naming(library, "firebird") == {"one", "two"}
    shelf.people.delete_entity("Project Phoenix")
    assert _naming(library, "Project Phoenix") == set()


@pytest.mark.parametrize(
    "said",
    [
        {"text": "heron", "title": "Notes on Acme"},
        {"text": "heron", "summary": "What Acme does"},
        {"text": "heron", "keywords": ("orgs/acme",)},
        {"text": "# heron\n\n## Acme\n\nis here", "markdown": True},
        {"text": "heron [[acme|them]]"},
        {"text": "heron " * 2000 + "Acme"},
    ],
)
def test_a_title_a_summary_a_tag_and_a_heading_say_a_name_too(
    library: Library, world: ModuleType, said: dict[str, object]
) -> None:
    shelf = library.shelf(ANN)
    shelf.people.save_entity(NewEntity(name="Acme"))
    shelf.add(world.new_document("one", **said))
    shelf.add(world.new_document("two", "heron"))
    assert {each.raw_id for each in shelf.contexts(SearchFilter(entities=("Acme",)), 9)} == {"one"}


def test_a_name_that_is_a_word_too_is_found_where_it_is_a_name(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    for name in ("Will", "May"):
        shelf.people.save_entity(NewEntity(name=name, entity_type=EntityType.PERSON))
    shelf.add(world.new_document("will", "heron fed by Will"))
    shelf.add(world.new_document("may", "heron fed by May"))
    shelf.add(world.new_document("none", "heron: it may and it will fly in May"))
    assert (_naming(library, "Will"), _naming(library, "May")) == ({"will"}, {"may"})


def test_a_note_that_others_link_to_is_found_by_its_own_title(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    shelf.add(world.new_document("linking", "heron", entities=("Blue Lake",)))
    shelf.add(world.new_document("note", "heron", title="Blue lake"))
    shelf.add(world.new_document("saying", "heron of the Blue Lake", title="Birds"))
    assert _naming(library, "blue lake") == {"linking", "note"}


def test_nobody_sees_what_names_mean_to_another(library: Library, world: ModuleType) -> None:
    bob = Identity("bob")
    for identity in (ANN, bob):
        library.shelf(identity).add(world.new_document("one", "heron by Acme"))
    library.shelf(ANN).people.save_entity(NewEntity(name="Acme"))
    assert _naming(library, "Acme", identity=bob) == set()
    phone, any_device = Identity("ann", "phone"), ANN
    library.shelf(phone).add(world.new_document("two", "heron by Acme"))
    assert _naming(library, "Acme", identity=any_device) == {"one", "two"}
    assert _naming(library, "Acme", identity=phone) == set()  # the entity is no device's


def test_what_another_process_stores_is_seen_at_once(library: Library, world: ModuleType) -> None:
    library.shelf(ANN).people.save_entity(NewEntity(name="Acme"))
    assert _naming(library, "Acme") == set()
    other = Library(library.directory, world.HashEmbedder())
    try:
        other.shelf(ANN).add(world.new_document("one", "heron by Acme"))
        assert _naming(library, "Acme") == {"one"}
    finally:
        other.close()


def test_what_is_not_indexed_yet_is_found_when_it_is(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
    shelf.people.save_entity(NewEntity(name="Acme"))
    shelf.add(world.new_document("one", "heron by Acme"))
    with library.database.write() as connection:
        maintenance.reset(connection)
    shelf.count(SearchFilter(entities=("Acme",)))
    while maintenance.work(library.database):
        pass
    assert _naming(library, "Acme") == {"one"}
