import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.database import Database, View
from storage.errors import (
    AmbiguousNameError,
    EntityNotFoundError,
    InvalidSourceError,
    RelationshipNotFoundError,
)
from storage.models import Identity
from storage.people.entities import MAX_ALIASES
from storage.people.mentions_index import mentioned_names
from storage.people.models import MAX_VALUES, EntityMatch, EntityType, NewEntity, NewRelationship
from storage.people.people import MAX_SPELLINGS, People
from storage.tokenize import fold

ANN = Identity("ann")
PERSON, PROJECT, OTHER = EntityType.PERSON, EntityType.PROJECT, EntityType.OTHER

Mention = Callable[..., None]


@pytest.fixture
def people(database: Database) -> People:
    return People(database, ANN)


@pytest.fixture
def mention(database: Database) -> Mention:
    """Stores a context that mentions names."""
    return lambda *names, identity=ANN: _mention(database, identity, names)


def _mention(database: Database, identity: Identity, names: Sequence[str]) -> None:
    with database.write() as connection:
        seq = connection.execute(
            "INSERT INTO contexts (id, context_type, user_id, device_id, agent_id, raw_type,"
            " raw_id, title, summary, keywords, entities, metadata, confidence, importance,"
            " create_time, update_time, event_time, media_type, file_path, sha256, merge_count,"
            " hierarchy_level, time_bucket) VALUES (hex(randomblob(16)), 'event', ?, ?, ?, '', '',"
            " '', '', '[]', '[]', '{}', 5, 5, 0, 0, 0, '', '', '', 0, 0, '')",
            (identity.user_id, identity.device_id, identity.agent_id),
        ).lastrowid
        connection.executemany(
            "INSERT INTO mentions (user_id, folded, context_seq, name) VALUES (?, ?, ?, ?)",
            ((identity.user_id, fold(name), seq, name) for name in names),
        )


def _found(matches: list[EntityMatch]) -> list[tuple[str, str]]:
    return [(match.entity.name, match.how) for match in matches]


def _save(people: People, name: str, *aliases: str, entity_type: EntityType = PERSON) -> None:
    people.save_entity(NewEntity(name=name, aliases=aliases, entity_type=entity_type))


# Profiles


def test_a_profile_grows_fact_by_fact(people: People) -> None:
    assert people.profile() is None
    first, created = people.save_profile(summary="Ann, an engineer", facts={"city": "Rome", "a": 1})
    assert created
    second, created = people.save_profile(facts={"city": "Oslo", "a": None, "pets": ["Rex"]})
    assert not created
    assert second.summary == "Ann, an engineer"
    assert second.facts == {"city": "Oslo", "pets": ["Rex"]}
    assert second.create_time == first.create_time
    assert people.profile() == second


def test_a_profile_of_this_very_identity_comes_before_others_of_the_user(
    database: Database,
) -> None:
    phone, any_device = People(database, Identity("ann", "phone")), People(database, ANN)
    phone.save_profile(summary="on the phone")
    found = any_device.profile()
    assert found is not None
    assert found.summary == "on the phone"
    any_device.save_profile(summary="anywhere")
    phone.save_profile(summary="on the phone, later")
    found = any_device.profile()
    assert found is not None
    assert found.summary == "anywhere"
    assert People(database, Identity("ann", "watch")).profile() is None


def test_facts_do_not_grow_without_end(people: People) -> None:
    people.save_profile(facts={"a": "x" * (MAX_VALUES - 100)})
    with pytest.raises(InvalidSourceError, match="facts"):
        people.save_profile(facts={"b": "x" * 100})
    profile = people.profile()
    assert profile is not None
    assert set(profile.facts) == {"a"}


# Entities


def test_an_entity_is_merged_with_what_is_said_of_it_later(people: People) -> None:
    first, created = people.save_entity(
        NewEntity(
            name=" Zoë  Müller ",
            entity_type=PERSON,
            summary="Plays the harp",
            aliases=("Zo", "zoe muller"),
            metadata={"city": "Bern", "age": 40},
            importance=8,
        )
    )
    assert created
    assert (first.name, first.aliases) == ("Zoë Müller", ("Zo",))
    again, created = people.save_entity(
        NewEntity(name="ZOE MULLER", aliases=("Zozo", "ZO"), metadata={"age": None})
    )
    assert not created
    assert again.id == first.id
    assert (again.name, again.entity_type) == ("Zoë Müller", PERSON)
    assert (again.summary, again.importance) == ("Plays the harp", 8)
    assert again.aliases == ("Zo", "Zozo")
    assert again.metadata == {"city": "Bern"}
    assert people.count() == 1


def test_an_alias_that_only_one_entity_has_stands_for_it(people: People) -> None:
    _save(people, "Robert Smith", "Bob")
    entity, created = people.save_entity(NewEntity(name="bob", summary="A friend"))
    assert (entity.name, created) == ("Robert Smith", False)
    _save(people, "Bob Jones", "Bob")
    entity, created = people.save_entity(NewEntity(name="Bob", entity_type=PERSON))
    assert (entity.name, created) == ("Bob", True)


def test_one_name_may_belong_to_entities_of_several_types(people: People) -> None:
    _save(people, "Mercury", entity_type=PROJECT)
    _save(people, "mercury", entity_type=EntityType.ORGANIZATION)
    assert people.count() == 2
    assert [match.entity.entity_type for match in people.find("MERCURY", PROJECT)] == [PROJECT]
    with pytest.raises(AmbiguousNameError) as caught:
        people.save_entity(NewEntity(name="Mercury", summary="which?"))
    assert caught.value.candidates == ("mercury (organization)", "Mercury (project)")
    with pytest.raises(AmbiguousNameError):
        people.delete_entity("Mercury")
    assert people.count() == 2


def test_an_entity_of_unknown_type_takes_the_type_that_is_told_later(people: People) -> None:
    first, _ = people.save_entity(NewEntity(name="Apollo"))
    assert first.entity_type is OTHER
    second, created = people.save_entity(NewEntity(name="Apollo", entity_type=PROJECT))
    assert (second.id, second.entity_type, created) == (first.id, PROJECT, False)


@pytest.mark.parametrize("new", [NewEntity(name=" \n"), NewEntity(name="Ann", aliases=(" ",))])
def test_a_blank_name_is_refused(people: People, new: NewEntity) -> None:
    with pytest.raises(InvalidSourceError, match="blank"):
        people.save_entity(new)
    assert people.count() == 0


def test_aliases_do_not_grow_without_end(people: People) -> None:
    _save(people, "Ann", *(f"alias {number}" for number in range(MAX_ALIASES)))
    with pytest.raises(InvalidSourceError, match="aliases"):
        _save(people, "Ann", "one more")


def test_many_that_save_one_entity_at_once_lose_nothing(people: People) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: _save(people, "Ann", f"alias {number}"), range(20)))
    (entity,) = people.listed(limit=10)
    assert sorted(entity.aliases) == sorted(f"alias {number}" for number in range(20))


def test_entities_are_listed_by_name_in_pages(people: People) -> None:
    for name in ("Émile", "zoe", "Ann", "bob"):
        _save(people, name)
    _save(people, "Apollo", entity_type=PROJECT)
    names = [entity.name for entity in people.listed(limit=10)]
    assert names == ["Ann", "Apollo", "bob", "Émile", "zoe"]
    assert [entity.name for entity in people.listed(limit=2, offset=2)] == ["bob", "Émile"]
    assert [entity.name for entity in people.listed(PROJECT, limit=10)] == ["Apollo"]
    assert (people.count(), people.count(PROJECT)) == (5, 1)


def test_a_deleted_entity_leaves_nothing_behind(people: People, database: Database) -> None:
    _save(people, "Ann Lee", "Annie")
    _save(people, "Bob")
    people.relate(NewRelationship(source="Ann Lee", relation="knows", target="Bob"))
    people.relate(NewRelationship(source="Bob", relation="knows", target="Ann Lee"))
    entity, removed = people.delete_entity("annie")
    assert (entity.name, removed) == ("Ann Lee", 2)
    assert people.find("Ann Lee") == people.find("Annie") == people.search("Ann") == []
    with database.read() as connection:
        for left in (
            connection.execute("SELECT count(DISTINCT entity_seq) FROM entity_names"),
            connection.execute("SELECT count(DISTINCT entity_seq) FROM entity_terms"),
        ):
            assert left.fetchone()[0] == 1
        assert connection.execute("SELECT count(*) FROM relationships").fetchone()[0] == 0


def test_a_name_that_is_merely_alike_deletes_nothing(people: People) -> None:
    _save(people, "Anna Schmidt")
    with pytest.raises(EntityNotFoundError) as caught:
        people.delete_entity("Ana Schmidt")
    assert caught.value.candidates == ("Anna Schmidt",)
    assert people.count() == 1


# Finding


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("Anna Schmidt", "exact"),
        ("Annie", "alias"),
        ("annie", "folded"),
        ("Schmidt, Anna", "folded"),
        ("Schmidt", "partial"),
        ("Prof. Dr. Anna Schmidt", "partial"),
        ("A. Schmidt", "partial"),
        ("Ann Schmidt", "fuzzy"),
        ("Anie", None),
    ],
)
def test_an_entity_is_found_in_the_surest_way(people: People, asked: str, how: str | None) -> None:
    _save(people, "Anna Schmidt", "Annie")
    _save(people, "Bernd Weiß")
    found = people.find(asked)
    assert _found(found) == ([] if how is None else [("Anna Schmidt", how)])
    assert all(match.score == 1 for match in found if how in {"exact", "alias", "folded"})


def test_similar_entities_include_those_hardly_meant(people: People) -> None:
    _save(people, "Anna Schmidt", "Annie")
    _save(people, "Anne Schmitt")
    _save(people, "Quentin")
    assert [name for name, _ in _found(people.similar("Anna Schmidt"))] == [
        "Anna Schmidt",
        "Anne Schmitt",
    ]
    assert _found(people.similar("Anie"))[0] == ("Anna Schmidt", "fuzzy")


def test_a_search_ranks_by_name_and_words_not_by_age(people: People) -> None:
    people.save_entity(NewEntity(name="Heron", entity_type=PROJECT, summary="Maps of wetlands"))
    people.save_entity(
        NewEntity(name="Anna Schmidt", entity_type=PERSON, summary="Leads the Heron project")
    )
    people.save_entity(
        NewEntity(name="Bob", entity_type=PERSON, metadata={"hobby": ["wetlands", "chess"]})
    )
    people.save_entity(NewEntity(name="Quentin", entity_type=PERSON, summary="Bakes bread"))
    assert _found(people.search("heron")) == [("Heron", "folded"), ("Anna Schmidt", "words")]
    assert _found(people.search("who leads something?")) == [("Anna Schmidt", "words")]
    assert _found(people.search("wetland maps")) == [("Heron", "words"), ("Bob", "words")]
    assert _found(people.search("wetlands", PERSON)) == [("Bob", "words")]
    assert people.search("volcano") == []
    assert len(people.search("wetlands", top_k=1)) == 1
    for query in ("heron", "wetland maps"):
        scores = [match.score for match in people.search(query)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize("wild", ["%", "_", "*", "%nn%", "A*", "' OR 1=1 --", '"', "\\", "[A-Z]"])
def test_a_wildcard_is_a_mere_character(people: People, wild: str) -> None:
    _save(people, "Anna")
    assert people.find(wild) == people.search(wild) == []
    _save(people, f"100{wild}")
    assert _found(people.find(f"100{wild}")) == [(f"100{wild}", "exact")]


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5), st.text(max_size=20))
def test_any_text_is_a_name_that_finds_itself(names: list[str], asked: str) -> None:
    with TemporaryDirectory() as directory:
        database = Database(Path(directory) / "toolcrib.db")
        people = People(database, ANN)
        try:
            for name in names:
                if not name.replace("\0", " ").strip():
                    with pytest.raises(InvalidSourceError):
                        people.save_entity(NewEntity(name=name))
                    continue
                entity, _ = people.save_entity(NewEntity(name=name, aliases=(f"{name} x",)))
                assert entity in [match.entity for match in people.find(entity.name)]
                assert fold(entity.name) in people.spellings(entity.name)
            for matches in (people.find(asked), people.similar(asked), people.search(asked)):
                assert all(0 < match.score <= 1 for match in matches)
                assert len({match.entity.id for match in matches}) == len(matches)
            assert len(people.spellings(asked)) <= MAX_SPELLINGS
        finally:
            database.close()


# Relationships


def test_a_relationship_is_directed_and_merged(people: People) -> None:
    _save(people, "Ann", "Annie")
    _save(people, "Apollo", entity_type=PROJECT)
    new = NewRelationship(source="annie", relation="works_on", target="APOLLO", metadata={"h": 3})
    first, created, made = people.relate(new)
    assert (created, made) == (True, ())
    assert (first.source, first.relation, first.target) == ("Ann", "works_on", "Apollo")
    assert (first.source_type, first.target_type) == (PERSON, PROJECT)
    second, created, _ = people.relate(
        NewRelationship(source="Ann", relation="Works on", target="Apollo", description="part time")
    )
    assert not created
    assert (second.relation, second.description) == ("works_on", "part time")
    assert second.metadata == {"h": 3}
    _, created, _ = people.relate(
        NewRelationship(source="Apollo", relation="works on", target="Ann")
    )
    assert created
    ones, others, found = people.relationships_of("Ann", "apolo")
    assert [entity.name for entity in (*ones, *others)] == ["Ann", "Apollo"]
    assert [(each.source, each.target) for each in found] == [("Ann", "Apollo"), ("Apollo", "Ann")]


def test_an_unknown_end_is_refused_or_made(people: People) -> None:
    _save(people, "Anna Schmidt")
    new = NewRelationship(
        source="Ana Schmidt", relation="works on", target="Apollo", target_type=PROJECT
    )
    with pytest.raises(EntityNotFoundError) as caught:
        people.relate(new)
    assert caught.value.candidates == ("Anna Schmidt",)
    assert people.count() == 1
    saved, created, made = people.relate(new, create_missing=True)
    assert (created, made) == (True, ("Ana Schmidt", "Apollo"))
    assert (saved.source_type, saved.target_type) == (OTHER, PROJECT)


def test_an_end_of_unknown_type_takes_the_type_that_is_told(people: People) -> None:
    _save(people, "Ann")
    people.save_entity(NewEntity(name="Apollo"))
    saved, _, made = people.relate(
        NewRelationship(source="Ann", relation="leads", target="Apollo", target_type=PROJECT),
        create_missing=True,
    )
    assert (saved.target_type, made, people.count()) == (PROJECT, (), 2)


def test_a_failed_relationship_makes_no_end(people: People) -> None:
    new = NewRelationship(source="Ann", relation=" ", target="Bob")
    with pytest.raises(InvalidSourceError, match="blank"):
        people.relate(new, create_missing=True)
    assert people.count() == 0


def test_an_entity_is_not_related_to_itself(people: People) -> None:
    _save(people, "Robert", "Bob")
    with pytest.raises(InvalidSourceError, match="are both 'Robert'"):
        people.relate(NewRelationship(source="Bob", relation="is", target="Robert"))


def test_an_end_of_several_types_wants_its_type(people: People) -> None:
    _save(people, "Ann")
    _save(people, "Mercury", entity_type=PROJECT)
    _save(people, "Mercury", entity_type=EntityType.ORGANIZATION)
    new = NewRelationship(source="Ann", relation="joined", target="Mercury")
    with pytest.raises(AmbiguousNameError):
        people.relate(new)
    saved, _, _ = people.relate(
        NewRelationship(
            source="Ann", relation="joined", target="Mercury", target_type=EntityType.ORGANIZATION
        )
    )
    assert saved.target_type is EntityType.ORGANIZATION
    _, _, found = people.relationships_of("mercury")  # of either
    assert found == [saved]


def test_relationships_are_those_of_the_entity_that_a_name_means(people: People) -> None:
    for name in ("Anna Schmidt", "Bernd Schmidt", "Carl"):
        _save(people, name)
    _save(people, "Apollo", entity_type=PROJECT)
    for source, relation, target in (
        ("Anna Schmidt", "leads", "Apollo"),
        ("Carl", "knows", "Anna Schmidt"),
        ("Carl", "knows", "Bernd Schmidt"),
    ):
        people.relate(NewRelationship(source=source, relation=relation, target=target))
    _, _, found = people.relationships_of("anna")
    assert [each.relation for each in found] == ["knows", "leads"]
    _, _, found = people.relationships_of("anna", other_type=PROJECT)
    assert [each.target for each in found] == ["Apollo"]
    _, _, found = people.relationships_of("Carl", "Apollo")
    assert found == []
    with pytest.raises(AmbiguousNameError, match="Bernd Schmidt"):
        people.relationships_of("Schmidt")
    with pytest.raises(EntityNotFoundError):
        people.relationships_of("Quentin")


def test_a_path_leads_through_a_third(people: People) -> None:
    for name in ("Ann", "Bob", "Apollo", "Zeus", "Far"):
        _save(people, name)
    for source, relation, target in (
        ("Ann", "leads", "Apollo"),
        ("Bob", "works on", "Apollo"),
        ("Zeus", "knows", "Ann"),
        ("Zeus", "knows", "Bob"),
        ("Ann", "knows", "Bob"),
        ("Ann", "knows", "Far"),
    ):
        people.relate(NewRelationship(source=source, relation=relation, target=target))
    ones, others, direct = people.relationships_of("Ann", "Bob")
    assert len(direct) == 1
    paths = people.paths(ones, others)
    assert [path.through for path in paths] == ["Apollo", "Zeus"]
    assert [each.relation for each in (*paths[0].first, *paths[0].second)] == ["leads", "works on"]


def test_a_relationship_is_deleted_in_its_direction_only(people: People) -> None:
    for source, target in (("Ann", "Bob"), ("Bob", "Ann")):
        people.relate(
            NewRelationship(source=source, relation="works with", target=target),
            create_missing=True,
        )
    assert people.unrelate("ann", "Works_With", "BOB") == 1
    _, _, found = people.relationships_of("Ann")
    assert [each.source for each in found] == ["Bob"]
    with pytest.raises(RelationshipNotFoundError) as caught:
        people.unrelate("Ann", "works with", "Bob")
    assert caught.value.candidates == ("Bob works with Ann",)
    with pytest.raises(EntityNotFoundError):
        people.unrelate("Ann", "works with", "Bib")


# What a filter asks


def test_a_name_stands_for_every_name_of_its_entity(people: People, mention: Mention) -> None:
    _save(people, "Anna Schmidt", "Annie", "A. S.")
    mention("ANNIE")
    for asked in ("Anna Schmidt", "annie", "Schmidt, Anna", "Schmidt", "Anna Schmit"):
        assert set(people.spellings(asked)) == {"anna schmidt", "annie", "a s"}, asked


def test_a_name_without_an_entity_stands_for_the_mentioned_ones(
    people: People, mention: Mention
) -> None:
    mention("José García", "Jose Garcia Lopez", "Bob")
    mention("JOSE GARCIA")
    assert people.spellings("Garcia, Jose") == ("jose garcia",)
    assert people.spellings("Garcia") == ("jose garcia", "jose garcia lopez")
    assert people.spellings("Jose Gracia") == ("jose garcia",)
    assert people.spellings("Quentin") == people.spellings("") == people.spellings("%") == ()


def test_saving_an_entity_hides_no_mention(people: People, mention: Mention) -> None:
    mention("Prof. Anna Schmidt")
    assert people.spellings("Anna Schmidt") == ("prof anna schmidt",)
    _save(people, "Anna Schmidt")
    assert set(people.spellings("Anna Schmidt")) == {"anna schmidt", "prof anna schmidt"}


def test_spellings_are_not_without_end(people: People, mention: Mention) -> None:
    mention(*(f"Smith {number:03}" for number in range(MAX_SPELLINGS + 20)))
    assert len(people.spellings("Smith")) == MAX_SPELLINGS


def test_names_are_listed_once_without_a_scan_of_all_mentions(
    database: Database, mention: Mention
) -> None:
    for _ in range(3):
        mention("Ann", "Bob", "Émile")
    mention("Bib", identity=Identity("bob"))
    steps: list[int] = []
    with database.read() as connection:
        assert sorted(mentioned_names(View(connection, ANN))) == ["ann", "bob", "emile"]
        assert mentioned_names(View(connection, Identity("nobody"))) == []
        before = _steps(connection, steps)
    for _ in range(60):
        mention("Ann", "Bob", "Émile")
    with database.read() as connection:
        assert _steps(connection, steps) <= before


def _steps(connection: sqlite3.Connection, steps: list[int]) -> int:
    """Instructions of SQLite's machine that the listing of names takes."""
    steps.clear()
    connection.set_progress_handler(lambda: steps.append(1), 1)
    mentioned_names(View(connection, ANN))
    connection.set_progress_handler(None, 0)
    return len(steps)


# Isolation

identities = st.builds(
    Identity,
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["", "phone", "desk"]),
    st.sampled_from(["", "helper"]),
)
NAMES = ("Anna Schmidt", "Bob", "Apollo")


def _sees(reader: Identity, owner: Identity) -> bool:
    return (
        reader.user_id == owner.user_id
        and reader.device_id in {"", owner.device_id}
        and reader.agent_id in {"", owner.agent_id}
    )


@settings(max_examples=20)
@given(writers=st.lists(identities, min_size=1, max_size=4, unique=True), reader=identities)
def test_nothing_crosses_users_or_devices(writers: list[Identity], reader: Identity) -> None:
    with TemporaryDirectory() as directory:
        database = Database(Path(directory) / "toolcrib.db")
        try:
            for writer in writers:
                _fill(database, writer)
            _check_reads(People(database, reader), reader, writers)
            _check_deletions(database, reader, writers)
        finally:
            database.close()


def _fill(database: Database, writer: Identity) -> None:
    people = People(database, writer)
    people.save_profile(summary=repr(writer), facts={"of": repr(writer)})
    for name in NAMES:
        people.save_entity(NewEntity(name=name, aliases=(f"{name} too",), summary="heron"))
    people.relate(NewRelationship(source="Bob", relation="knows", target="Anna Schmidt"))
    people.relate(NewRelationship(source="Bob", relation="knows", target="Apollo"))
    _mention(database, writer, ["Quentin", repr(writer)])


def _check_reads(people: People, reader: Identity, writers: list[Identity]) -> None:
    seen = [writer for writer in writers if _sees(reader, writer)]
    profile = people.profile()
    assert (profile.identity in seen) if profile else not seen
    assert people.count() == len(people.listed(limit=100)) == 3 * len(seen)
    for matches in (
        people.find("Anna Schmidt"),
        people.find("bob too"),
        people.find("Schmidt"),
        people.find("Appollo"),
        people.similar("Bobb"),
        people.search("heron"),
    ):
        assert {match.entity.identity for match in matches} == set(seen)
    for writer in writers:
        assert bool(people.spellings(repr(writer))) == (writer in seen) or seen
        assert fold(repr(writer)) not in people.spellings(repr(writer)) or writer in seen
    assert people.spellings("Quentin") == (("quentin",) if seen else ())
    if not seen:
        with pytest.raises(EntityNotFoundError) as caught:
            people.relationships_of("Bob")
        assert caught.value.candidates == ()
        return
    bobs, annas, found = people.relationships_of("Bob", "Anna Schmidt")
    assert len(found) == len(seen)
    assert {entity.identity for entity in (*bobs, *annas)} == set(seen)
    apollos, _, _ = people.relationships_of("Apollo")
    assert len(people.paths(annas, apollos)) == len(seen)


def _check_deletions(database: Database, reader: Identity, writers: list[Identity]) -> None:
    people = People(database, reader)
    seen = [writer for writer in writers if _sees(reader, writer)]
    if seen:
        assert people.unrelate("Bob", "knows", "Apollo") == len(seen)
        assert people.delete_entity("Bob")[1] == len(seen)
    else:
        with pytest.raises(EntityNotFoundError):
            people.unrelate("Bob", "knows", "Apollo")
        with pytest.raises(EntityNotFoundError):
            people.delete_entity("Bob")
    for writer in writers:
        own = People(database, writer)
        left = [entity for entity in own.listed(limit=100) if entity.identity == writer]
        assert len(left) == (2 if writer in seen else 3)
        profile = own.profile()
        assert profile is not None
        assert profile.facts == {"of": repr(writer)}
