"""Exports come back: the same records, the same finds, and nothing twice."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from storage.agent.steps import Draft
from storage.agent.steps import moved as with_status
from storage.errors import ContextNotFoundError, UnreadableDocumentError
from storage.events.buckets import DAY, MONTH, WEEK
from storage.keeping.export import export_jsonl
from storage.keeping.importing import import_jsonl
from storage.keeping.records import is_export
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, NewEntry, SearchFilter, Turn
from storage.people.models import EntityType, NewEntity, NewRelationship

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")
WORDS = ("rope", "wind", "Åland", "berth", "潮", "starter", "# Knots", "- tie.", "Tide!", "a" * 400)
DAYS = 86_400

words = st.lists(st.sampled_from([*WORDS, "\n", "\n\n", "   "]), min_size=1, max_size=60)
texts = words.map(lambda each: " ".join(["It", *each]))
names = st.sampled_from(["Åsa", "asa", "Regatta", "The Crew", "Kiel"])
values = st.dictionaries(
    st.sampled_from(["year", "tags", "place"]),
    st.integers(2018, 2022) | st.lists(st.sampled_from(["a", "b"])) | st.sampled_from(["Kiel"]),
)
shelves = st.sampled_from([ANN, PHONE, BOB])


@st.composite
def documents(draw: st.DrawFn) -> NewContext:
    return NewContext(
        title=draw(st.sampled_from(["Sailing", "Bread", "Knots"])),
        text=draw(texts),
        markdown=draw(st.booleans()),
        media_type=draw(st.sampled_from(["text/markdown", "text/plain", "application/pdf"])),
        raw_type="file",
        raw_id=draw(st.sampled_from(["a.md", "b.md", "c.md"])),
        metadata=draw(values),
        entities=tuple(draw(st.lists(names, max_size=2))),
        event_time=draw(st.none() | st.floats(-1e9, 2e9)),
    )


@st.composite
def conversations(draw: st.DrawFn) -> NewContext:
    turns = st.builds(Turn, heading=st.sampled_from(["Ann", "Bot", ""]), content=texts)
    return NewContext(
        title="About the boat",
        turns=tuple(draw(st.lists(turns, min_size=1, max_size=4))),
        raw_type="chat",
        raw_id=draw(st.sampled_from(["1", "2"])),
    )


@st.composite
def notes(draw: st.DrawFn) -> NewContext:
    """Knowledge, memories and events."""
    kind = draw(st.sampled_from([ContextType.KNOWLEDGE, ContextType.EVENT]))
    layers = [0, 2, 4] if kind is ContextType.KNOWLEDGE else [0]
    return NewContext(
        context_type=kind,
        title=draw(st.sampled_from(["Tea", "Trip"])),
        text=draw(texts),
        keywords=tuple(draw(st.lists(names, max_size=2))),
        importance=draw(st.floats(0, 10)),
        metadata=draw(values),
        event_time=draw(st.integers(0, 40).map(lambda day: day * DAYS + 0.5)),
        memory_layer=draw(st.sampled_from(layers)),
        session_id="s1",
    )


libraries = st.lists(st.tuples(shelves, documents() | conversations() | notes()), max_size=12)
calls = st.lists(
    st.builds(
        NewEntry,
        session_id=st.sampled_from(["s1", "s2"]),
        client=st.just("Cursor"),
        kind=st.sampled_from(["call", "message"]),
        time=st.integers(1, 20).map(float),
        action=st.sampled_from(["query", "add_document"]),
        target=names,
        arguments=st.dictionaries(st.sampled_from(["top_k", "query"]), st.integers() | words),
        said=texts,
        importance=st.floats(0, 10),
        is_recall=st.booleans(),
    ),
    max_size=8,
)
people = st.lists(st.tuples(shelves, names, names, st.sampled_from(["knows", "works on"])))


@contextmanager
def emptied(world: ModuleType) -> Iterator[tuple[Path, Library]]:
    """A folder, and a library in it that holds nothing."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        with closing(Library(path / "data", world.HashEmbedder())) as library:
            yield path, library


def fill(library: Library, contexts: list[Any], known: list[Any], called: list[Any]) -> None:
    ids = [library.shelf(identity).add(new).context.id for identity, new in contexts]
    for entry in called:
        library.entries.record(ANN, replace(entry, context_ids=tuple(ids)))
    library.shelf(ANN).memories.promote()
    for session in library.shelf(ANN).memories.due_sessions(9)[0]:
        library.shelf(ANN).memories.keep(session, "Ann asked.", "extractive")
    for identity, one, other, relation in known:
        crew = library.shelf(identity).people
        crew.save_profile(summary=f"{one} sails.", facts={one: other})
        crew.save_entity(
            NewEntity(name=one, entity_type=EntityType.PERSON, aliases=(f"{other} II",))
        )
        crew.save_entity(NewEntity(name=other, entity_type=EntityType.PROJECT))
        crew.relate(
            NewRelationship(
                source=one,
                source_type=EntityType.PERSON,
                relation=relation,
                target=other,
                target_type=EntityType.PROJECT,
            )
        )
    for identity in (ANN, PHONE, BOB):
        sum_up(library.shelf(identity))


def sum_up(shelf: Shelf) -> None:
    for level in (DAY, WEEK, MONTH):
        for due in shelf.events.review(level, 1e10, 100).due:
            shelf.events.keep(due, shelf.events.extract(due, 500), "extractive")


def exported(library: Library, target: Path) -> list[dict[str, Any]]:
    export_jsonl(library.database, target, None)
    return [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


def found(library: Library, query: str) -> list[Any]:
    """Hits and their scores, but for the last digits of sums that are added in another order."""
    return sorted(
        (
            hit.context.id,
            hit.chunk.position,
            hit.chunk.content,
            round(hit.score, 3),
            round(hit.lexical, 6),
        )
        for identity in (ANN, PHONE, BOB)
        for hit in library.shelf(identity).search(query, SearchFilter(), 50).hits
    )


def versions(library: Library) -> list[Any]:
    with library.database.read() as connection:
        return [tuple(row) for row in connection.execute("SELECT * FROM versions")]


# Shrinking a library takes minutes, and its records say well enough what differs.
@settings(max_examples=8, phases=(Phase.reuse, Phase.generate))
@given(contexts=libraries, known=people, called=calls)
def test_what_was_exported_comes_back_and_is_found_as_before_and_a_second_import_changes_nothing(
    world: ModuleType, contexts: list[Any], known: list[Any], called: list[Any]
) -> None:
    with emptied(world) as (folder, library), emptied(world) as (_, other):
        fill(library, contexts, known, called)
        before = exported(library, folder / "one.jsonl")
        outcomes = import_jsonl(other.database, folder / "one.jsonl", None).outcomes
        assert outcomes == ({"added": len(before) - 1} if before[1:] else {})
        assert exported(other, folder / "two.jsonl") == before
        stood = versions(other)
        again = import_jsonl(other.database, folder / "one.jsonl", None).outcomes
        assert set(again) <= {"unchanged"}
        assert versions(other) == stood
        assert exported(other, folder / "three.jsonl") == before
        for each in (library, other):
            world.drain(each)
        for query in WORDS[:5]:
            assert found(other, query) == found(library, query)


def note(text: str, **given: Any) -> NewContext:
    return NewContext(**{"title": "Note", "raw_type": "text", "raw_id": "note", **given}, text=text)


@pytest.fixture
def other(library_of: Callable[..., Library], tmp_path: Path, world: ModuleType) -> Library:
    return library_of(world.HashEmbedder(), tmp_path / "other")


def moved(library: Library, other: Library, identity: Identity | None = None) -> dict[str, int]:
    """Takes everything of a library to another."""
    with TemporaryDirectory() as folder:
        export_jsonl(library.database, Path(folder, "out"), None)
        result = import_jsonl(other.database, Path(folder, "out"), identity)
        return dict(result.outcomes.items())


def stored_text(library: Library, identity: Identity) -> str:
    _, chunks = library.shelf(identity).get_document("text", "note")
    return "".join(chunk.content for chunk in chunks)


def test_of_two_versions_of_a_document_the_later_one_is_kept(
    library: Library, other: Library
) -> None:
    first = library.shelf(ANN).add(note("the first version")).context
    second = other.shelf(ANN).add(note("the second version")).context
    assert moved(library, other) == {"unchanged": 1}
    assert stored_text(other, ANN) == "the second version"
    assert moved(other, library) == {"replaced": 1}
    assert stored_text(library, ANN) == "the second version"
    kept, _ = library.shelf(ANN).get(first.id)
    assert (kept.update_time, kept.sha256) == (second.update_time, second.sha256)
    assert moved(other, library) == {"unchanged": 1}
    found = library.shelf(ANN).search("first", SearchFilter(), 5).hits
    assert not any(hit.matched_terms for hit in found)


def test_knowledge_that_says_the_very_same_is_stored_once_and_a_memory_is_none(
    library: Library, other: Library
) -> None:
    def tea(layer: int) -> NewContext:
        return note("Ann drinks tea.", context_type=ContextType.KNOWLEDGE, memory_layer=layer)

    for layer in (0, 4):
        library.shelf(ANN).add(tea(layer))
    other.shelf(ANN).add(tea(0))
    assert moved(library, other) == {"unchanged": 1, "added": 1}
    (memory,) = other.shelf(ANN).contexts(SearchFilter(memory_layers=(4,)), 9)
    assert memory.memory_layer == 4


def test_what_is_known_of_people_is_joined_and_the_later_change_holds(
    library: Library, other: Library
) -> None:
    ours, theirs = library.shelf(ANN).people, other.shelf(ANN).people
    ours.save_entity(NewEntity(name="Regatta", entity_type=EntityType.PROJECT))
    ours.save_entity(NewEntity(name="Åsa", entity_type=EntityType.PERSON, aliases=("Captain",)))
    ours.relate(NewRelationship(source="Åsa", relation="trains for", target="Regatta"))
    ours.save_profile(summary="Ann rows.", facts={"boat": "Kiel", "home": "Turku"})
    theirs.save_entity(NewEntity(name="asa", entity_type=EntityType.PERSON, aliases=("Skipper",)))
    theirs.save_profile(facts={"boat": "Åland"})
    assert moved(library, other) == {"replaced": 2, "added": 2}
    profile = theirs.profile()
    assert profile is not None
    assert profile.facts == {"boat": "Åland", "home": "Turku"}
    assert profile.summary == "Ann rows."
    assert set(theirs.spellings("captain")) == {"asa", "skipper", "captain"}
    assert moved(library, other) == {"unchanged": 4}


def test_everything_can_come_under_the_callers_own_identity_beside_the_original(
    library: Library,
) -> None:
    library.shelf(ANN).add(note("the wind turns"))
    event = library.shelf(PHONE).add(note("a trip", context_type=ContextType.EVENT)).context
    target = library.directory / "all.jsonl"
    export_jsonl(library.database, target, None)
    for outcome in ("added", "unchanged"):
        assert import_jsonl(library.database, target, BOB).outcomes == {outcome: 2}
    bobs = library.shelf(BOB).contexts(SearchFilter(), 9)
    assert {each.identity for each in bobs} == {BOB}
    assert len(bobs) == 2
    assert event.id not in {each.id for each in bobs}
    assert stored_text(library, BOB) == stored_text(library, ANN)


def test_a_summary_that_came_back_loses_its_words_when_its_event_is_forgotten(
    library: Library, other: Library
) -> None:
    trip = note("Ann met Grace.", context_type=ContextType.EVENT, event_time=DAYS)
    event = library.shelf(ANN).add(trip).context
    sum_up(library.shelf(ANN))
    assert moved(library, other) == {"added": 4}
    shelf = other.shelf(ANN)
    assert shelf.get(event.id)[0].parent_id
    assert len(shelf.search("Grace", SearchFilter(), 9).hits) == 4
    shelf.forget([event.id])
    assert not shelf.search("Grace", SearchFilter(), 9).hits


def test_an_export_without_passages_is_cut_anew(library: Library, other: Library) -> None:
    text = "# Sea\n\n" + "\n\n".join(f"## Part {number}\n\n{'wind ' * 200}" for number in (1, 2))
    library.shelf(ANN).add(note(text, markdown=True, media_type="text/markdown"))
    turns = (Turn("Ann", "Is it paid?"), Turn("Bot", "Until May."))
    library.shelf(ANN).add(NewContext(title="Chat", turns=turns, raw_type="chat", raw_id="1"))
    target = library.directory / "out.jsonl"
    told = exported(library, target)
    for record in told[1:]:
        del record["passages"], record["memory_layer"], record["made_from"]
    target.write_text("".join(f"{json.dumps(record)}\n" for record in told))
    assert import_jsonl(other.database, target, None).outcomes == {"added": 2}
    for record in told[1:]:
        was, _is = (each.shelf(ANN).get(record["id"])[1] for each in (library, other))
        assert [(chunk.heading, chunk.content) for chunk in _is] == [
            (chunk.heading, chunk.content) for chunk in was
        ]


HEAD = {"record": "toolcrib", "format": 1}
PROFILE = {
    "record": "profile",
    "user_id": "ann",
    "device_id": "",
    "agent_id": "",
    "summary": "Ann sails.",
    "facts": {},
    "metadata": {},
    "create_time": 1.0,
    "update_time": 1.0,
}
RELATION = PROFILE | {
    "record": "relationship",
    "source_id": 1,
    "relation": "knows",
    "target_id": 2,
    "description": "",
}


def plan(*steps: str) -> dict[str, Any]:
    """A plan of steps as `id` or `id < blocker`."""
    parts = [step.partition(" < ") for step in steps]
    told = [{"id": each, "title": each, "blocked_by": by.split()} for each, _, by in parts]
    of_step = {"detail": "", "status": "pending", "note": "", "session_id": ""}
    of_plan = ("session_id", "continued_in", "goal", "reasoning", "message", "output")
    known = {key: PROFILE[key] for key in PROFILE if key not in {"summary", "facts", "metadata"}}
    plan = {"record": "plan", "id": "p", "status": "open", "steps": [of_step | s for s in told]}
    return known | plan | dict.fromkeys(of_plan, "s")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([HEAD, PROFILE, PROFILE | {"facts": "none"}], r"line 3: .*facts.* object"),
        ([HEAD, PROFILE, PROFILE | {"record": "spell"}], r"line 3: .*'spell'"),
        ([HEAD, PROFILE, PROFILE | {"update_time": "now"}], r"line 3: .*update_time.* number"),
        ([HEAD, PROFILE, RELATION], r"line 3: no earlier entity has the id 1"),
        ([HEAD, PROFILE, "half"], r"line 3: .*object"),
        ([HEAD, PROFILE, plan("a", "a")], r"line 3: .*two steps have the same id"),
        ([HEAD, PROFILE, plan("a < b", "b < a")], r"line 3: .*These steps wait for each other"),
        ([HEAD | {"format": 99}, PROFILE], r"format 99"),
        ([PROFILE], r"line 1"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_reason_before_anything_is_stored(
    library: Library, tmp_path: Path, lines: list[Any], reason: str
) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(UnreadableDocumentError, match=reason):
        import_jsonl(library.database, path, None)
    assert library.shelf(ANN).people.profile() is None


@settings(max_examples=20)
@given(end=st.integers(1, 300), junk=st.binary(max_size=20))
def test_a_half_written_or_scribbled_file_is_stored_wholly_or_not_at_all(
    world: ModuleType, end: int, junk: bytes
) -> None:
    with emptied(world) as (folder, library):
        sound = "".join(f"{json.dumps(line)}\n" for line in [HEAD, PROFILE]).encode()
        path = folder / "half.jsonl"
        path.write_bytes(sound[:end] + junk)
        try:
            outcomes = import_jsonl(library.database, path, None).outcomes
        except UnreadableDocumentError:
            assert library.shelf(ANN).people.profile() is None
        else:
            assert outcomes.total() == (library.shelf(ANN).people.profile() is not None)


def test_an_export_is_known_by_its_first_line_alone(tmp_path: Path) -> None:
    for line, known in (
        (json.dumps(HEAD), True),
        (json.dumps(PROFILE), False),
        ("[]", False),
        ("", False),
        ("x" * 5000, False),
    ):
        (tmp_path / "file").write_text(line)
        assert is_export(tmp_path / "file") is known


def test_what_was_stored_when_an_import_was_broken_off_is_kept_and_the_next_goes_on(
    library: Library, other: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.keeping.importing.BATCH", 2)
    for number in range(5):
        library.shelf(ANN).add(note(f"no {number}", raw_id=str(number)))
    target = library.directory / "out.jsonl"
    export_jsonl(library.database, target, None)

    def give_up(done: int, _total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_jsonl(other.database, target, None, give_up)
    reports: list[tuple[int, int]] = []
    result = import_jsonl(
        other.database, target, None, lambda done, total: reports.append((done, total))
    )
    assert result.outcomes == {"unchanged": 4, "added": 1}
    assert reports == [(2, 5), (4, 5), (5, 5)]


def test_entries_come_with_their_sessions_beside_others_of_the_same_number(
    library: Library, other: Library
) -> None:
    def said(text: str, time: float) -> NewEntry:
        return NewEntry(session_id="s1", kind="message", time=time, action="prompt", said=text)

    for text in ("one", "two"):
        library.entries.record(ANN, said(text, 5.0))
    other.entries.record(ANN, said("three", 9.0))
    assert moved(library, other) == {"added": 2, "unchanged": 1}
    assert [entry.said for entry in other.entries.recent(ANN, "s1", 9)] == ["two", "one", "three"]
    (session,) = other.entries.sessions(ANN, 9)
    assert (session.entries, session.last_time) == (3, 9.0)
    assert moved(library, other) == {"unchanged": 3}
    assert moved(other, library) == {"replaced": 1, "added": 1, "unchanged": 2}


def test_a_plan_comes_back_as_it_was_and_its_later_version_stays(
    library: Library, other: Library
) -> None:
    here, there = library.shelf(ANN).plans, other.shelf(ANN).plans
    dig = Draft(id="dig", title="Dig", detail="Deep")
    drafts = [dig, Draft(id="sow", title="Sow", blocked_by=("dig",))]
    made = here.create("s", "A garden", drafts, "It is spring")
    assert moved(library, other) == {"added": 1}
    assert there.get("s") == made
    assert moved(library, other) == {"unchanged": 1}
    there.change("s", "", lambda steps: with_status(steps, "dig", "completed", "done", "s"))
    assert moved(library, other) == {"unchanged": 1}
    assert moved(other, library) == {"replaced": 1}
    assert here.get("s") == there.get("s") != made
    event = NewContext(context_type=ContextType.EVENT, title="A garden", text="Enough")
    here.close("s", "", "Enough", "A bed", tell=lambda _plan: event, abandon=True)
    assert moved(library, other) == {"replaced": 1, "added": 1}
    assert there.get("s", made.id) == here.get("s", made.id)


def test_a_memory_that_came_back_goes_with_the_entry_it_was_made_from(
    library: Library, other: Library
) -> None:
    library.entries.record(
        ANN,
        NewEntry(
            session_id="s1",
            kind="message",
            time=5.0,
            action="prompt",
            said="Grace likes hemp.",
            importance=9,
        ),
    )
    (memory,) = library.shelf(ANN).memories.promote()
    assert moved(library, other) == {"added": 3}
    (entry,) = other.entries.recent(ANN, None, 9)
    assert other.shelf(ANN).get(memory.id)[0].memory_layer == 2
    other.entries.forget(ANN, [entry.seq])
    with pytest.raises(ContextNotFoundError):
        other.shelf(ANN).get(memory.id)
