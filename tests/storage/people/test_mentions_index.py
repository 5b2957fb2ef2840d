"""A filter by a saved name finds whatever says it in its text, whichever was stored first."""

from types import ModuleType

import pytest

from storage.index import maintenance
from storage.library import Library, Shelf
from storage.models import Identity, SearchFilter
from storage.people.mentions_index import NameRegex
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
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
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
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
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
    shelf: Shelf, world: ModuleType, said: dict[str, object]
) -> None:
    shelf.people.save_entity(NewEntity(name="Acme"))
    shelf.add(world.new_document("one", **said))
    shelf.add(world.new_document("two", "heron"))
    assert {each.raw_id for each in shelf.contexts(SearchFilter(entities=("Acme",)), 9)} == {"one"}


def test_a_name_that_is_a_word_too_is_found_where_it_is_a_name(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    for name in ("Will", "May"):
        shelf.people.save_entity(NewEntity(name=name, entity_type=EntityType.PERSON))
    shelf.add(world.new_document("will", "heron fed by Will"))
    shelf.add(world.new_document("may", "heron fed by May"))
    shelf.add(world.new_document("none", "heron: it may and it will fly in May"))
    assert (_naming(library, "Will"), _naming(library, "May")) == ({"will"}, {"may"})


def test_a_note_that_others_link_to_is_found_by_its_own_title(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann Lee", "they met ANN LEE's cat"),
        ("Ann Lee", "a line that ends with Ann\nLee"),
        ("Lee, Ann", "Ann Lee"),
        ("O'Brien", "Obrien was here"),
        ("OBrien", "it is O\u2019Brien\u2019s turn"),
        ("Zo\u00eb M\u00fcller", "zoe muller"),
        ("Mary-Ann", "Mary Ann"),
        ("J. R. R. Tolkien", "by J.R.R. Tolkien"),
        ("Dr. Berg", "ask Dr Berg"),
        ("Node.js", "needs Node.js."),
        ("C++", "in C++, of course"),
        ("AT&T", "at&t!"),
        ("Phoenix", "das phoenix projekt"),
        ("Jean-Luc", "Jean-Luc said so"),
        ("\u674e\u660e", "\u6628\u5929\u674e\u660e\u8bf4"),
        ("\u738b \u5c0f\u660e", "\u738b\u5c0f\u660e\u6765\u4e86"),
        ("\uae40\ubbfc\uc218", "\uae40\ubbfc\uc218\ub294"),
        ("Ann", "\u5f20Ann\u8bf4"),
        ("May", "May works on the budget."),
        ("May", "I met May there."),
        ("may", "I met May there."),
        ("Will", "Will leads it."),
        ("US", "made in the US"),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, text: str) -> None:
    assert NameRegex(name, of_person=True).is_in(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann", "Annabel cannot plan"),
        ("Ann Lee", "This was Ann. Lee came later."),
        ("Ann Lee", "written by Ann\n\nLee arrived"),
        ("Jean", "Jean-Luc"),
        ("Luc", "Jean-Luc"),
        ("Shell", "She'll be back, she'll"),
        ("\u30a2\u30f3", "\u30a2\u30f3\u30ca"),
        ("A", "A dog"),
        ("it", "It is late"),
        ("US", "let us go"),
        ("Mark", "leave a mark"),
        ("Mark", "Mark the day."),
        ("May", "we may go"),
        ("May", "May I go?"),
        ("May", "in May, and May 2024"),
        ("Will", "It will. Will the tests pass?"),
    ],
)
def test_other_words_are_no_name(name: str, text: str) -> None:
    assert not NameRegex(name, of_person=True).is_in(text)


def test_only_a_person_is_not_meant_by_a_double_name() -> None:
    assert NameRegex("Acme", of_person=False).is_in("Acme-Labs and Neo-Acme")
    assert not NameRegex("Acme", of_person=True).is_in("Acme-Labs and Neo-Acme")
