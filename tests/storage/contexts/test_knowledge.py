from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_lowercase
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.contexts.knowledge import MAX_MERGED_CHARS, MERGE_SIMILARITY, _normalize
from storage.errors import StorageUnavailableError
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter, Stored
from storage.people.models import NewEntity
from storage.retrieval.ranking import UnifiedHit
from storage.retrieval.routing import UnifiedQuery

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")
TEA = "Ann likes her tea strong with a little milk and no sugar at all"
TEA_AGAIN = "Ann likes her tea strong with a little milk and no sugar"
COFFEE = "Bob keeps bees behind the old brewery"


def _know(shelf: Shelf, text: str, **given: Any) -> Stored:
    return shelf.add(
        NewContext(**{"title": "", **given}, context_type=ContextType.KNOWLEDGE, text=text)
    )


def _text(shelf: Shelf, stored: Stored) -> str:
    return "\n".join(piece.content for piece in shelf.get(stored.context.id)[1])


def test_what_says_nearly_the_same_is_merged_and_counted(shelf: Shelf) -> None:
    first = _know(shelf, TEA, keywords=("tea",), entities=("Ann",), importance=3.0)
    again = _know(shelf, f"{TEA_AGAIN} honey", keywords=("honey",), importance=7.0)
    assert (first.outcome, again.outcome) == ("added", "merged")
    assert again.context.id == first.context.id
    assert again.similarity is not None
    assert MERGE_SIMILARITY <= again.similarity < 1
    assert again.context.merge_count == 1
    assert again.context.keywords == ("tea", "honey")
    assert again.context.entities == ("Ann",)
    assert again.context.importance == 7.0
    assert _text(shelf, again) == f"{TEA}\n{TEA_AGAIN} honey"
    assert shelf.count(SearchFilter()) == 1


def test_what_says_something_else_stays_apart(shelf: Shelf) -> None:
    assert [_know(shelf, text).outcome for text in (TEA, COFFEE)] == ["added", "added"]
    assert shelf.count(SearchFilter()) == 2


@pytest.mark.parametrize(
    ("statement", "subjects", "again"),
    [
        (
            "The size limit of {} is 30 MB.",
            ["Firm1", "Firm17", "Firm18", "Acme", "Globex", "acme-2"],
            "{}'s size limit is 30 MB.",
        ),
        (
            "Die Obergrenze von {} liegt bei 30 MB.",
            ["Firma1", "Firma17", "Acme", "Anna", "Hanna"],
            "Die Obergrenze von {} beträgt 30 MB.",
        ),
        (
            "{}的大小限制是30MB。",
            ["阿里", "腾讯", "公司1", "公司17", "张伟", "张强", "Acme"],
            "{}的大小限制为30MB",
        ),
    ],
)
def test_knowledge_of_different_subjects_never_merges_and_another_wording_does(
    library_of: Callable[..., Library],
    minilm: MiniLMEmbedder,
    statement: str,
    subjects: list[str],
    again: str,
) -> None:
    shelf = library_of(minilm).shelf(ANN)
    stored = [_know(shelf, statement.format(name)) for name in subjects]
    assert {each.outcome for each in stored} == {"added"}
    for name, known in zip(subjects, stored, strict=True):
        merged = _know(shelf, again.format(name))
        assert (merged.outcome, merged.context.id) == ("merged", known.context.id)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The shop of Ann is open on Sundays.", "The shop of Ann is not open on Sundays."),
        ("Annas Laden hat am Sonntag offen.", "Annas Laden hat am Sonntag nicht offen."),
        ("银行周日开门。", "银行周日不开门。"),
    ],
)
def test_what_is_denied_stays_beside_what_is_said(
    library_of: Callable[..., Library], minilm: MiniLMEmbedder, text: str, other: str
) -> None:
    shelf = library_of(minilm).shelf(ANN)
    assert [_know(shelf, each).outcome for each in (text, other)] == ["added", "added"]


def test_a_memory_of_another_subject_is_another_memory(
    library_of: Callable[..., Library], minilm: MiniLMEmbedder
) -> None:
    shelf = library_of(minilm).shelf(ANN)
    for name, outcome in (("Ben", "added"), ("Bea", "added"), ("Ben", "merged")):
        text = f"The dentist of {name} is in Mill Lane"
        assert _know(shelf, text, importance=7.0, memory_layer=2).outcome == outcome


def test_what_is_said_already_is_not_said_twice(shelf: Shelf) -> None:
    _know(shelf, TEA)
    again = _know(shelf, TEA_AGAIN)
    assert again.outcome == "merged"
    assert _text(shelf, again) == TEA
    assert _know(shelf, TEA).context.merge_count == 2


def test_merged_knowledge_is_found_at_once_and_after_it_is_embedded(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    _know(shelf, COFFEE)
    world.drain(library)
    first = _know(shelf, TEA)
    merged = f"{TEA_AGAIN} honey"
    _know(shelf, merged)
    for _ in range(2):
        (hit,) = shelf.search("honey", SearchFilter(), 5).hits
        assert hit.context.id == first.context.id
        assert hit.dense is not None
        world.drain(library)
    third = _know(shelf, f"{merged} please")
    assert third.context.id == first.context.id


def test_nothing_is_merged_across_identities_or_kinds(library: Library, shelf: Shelf) -> None:
    _know(library.shelf(ANN), TEA)
    assert _know(library.shelf(BOB), TEA).outcome == "added"
    assert _know(library.shelf(PHONE), TEA).outcome == "added"
    event = shelf.add(NewContext(context_type=ContextType.EVENT, title="", text=TEA))
    document = shelf.add(NewContext(title="tea", text=TEA, raw_type="text", raw_id="tea"))
    assert (event.outcome, document.outcome) == ("added", "added")
    assert _know(shelf, TEA).outcome == "merged"


def test_a_long_text_is_merged_into_the_very_same_text_alone(shelf: Shelf) -> None:
    long = "\n\n".join(f"Paragraph {number}. {TEA}. " * 12 for number in range(4))
    assert _know(shelf, long).outcome == "added"
    assert _know(shelf, f"{long} more").outcome == "added"
    assert _know(shelf, long).outcome == "merged"


def test_knowledge_does_not_grow_without_end(shelf: Shelf) -> None:
    words = " ".join(f"common{letter}" for letter in ascii_lowercase * 4)
    ids = {_know(shelf, f"{words} rare{letter}").context.id for letter in ascii_lowercase[:12]}
    lengths = [len(_text(shelf, Stored(shelf.get(each)[0], "added"))) for each in ids]
    assert len(ids) > 1
    assert max(lengths) <= MAX_MERGED_CHARS + 1


def test_without_an_embedder_only_the_same_text_is_merged(
    library: Library, shelf: Shelf, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:

    def unavailable(_texts: list[str]) -> Any:
        raise StorageUnavailableError("The endpoint is away.")

    with monkeypatch.context() as away:
        away.setattr(library.models.current()[1], "embed_passages", unavailable)
        outcomes = [_know(shelf, text).outcome for text in (TEA, f"{TEA} now", TEA)]
    assert outcomes == ["added", "added", "merged"]
    world.drain(library)
    assert shelf.index_status().complete


def test_two_that_say_the_same_at_once_end_as_one(
    library_of: Callable[..., Library], world: ModuleType, tmp_path: Path
) -> None:
    libraries = [library_of(world.HashEmbedder()) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(lambda n: _know(libraries[n % 2].shelf(ANN), TEA), range(12)))
    assert len({each.context.id for each in stored}) == 1
    assert sorted(each.outcome for each in stored) == ["added", *["merged"] * 11]
    assert libraries[0].shelf(ANN).get(stored[0].context.id)[0].merge_count == 11


@given(st.text(), st.text())
def test_a_text_is_plainly_in_what_it_was_put_into(before: str, text: str) -> None:
    assert _normalize(text) in _normalize(f"{before} {text}")


def _told(hit: UnifiedHit) -> str:
    assert hit.passage is not None
    return hit.passage.chunk.content.rpartition(": ")[2]


LIMIT = "The API limit of Acme is 100 a minute."
NEW_LIMIT = "Acme's API limit is now 200 per minute."


def test_another_value_takes_the_place_of_the_earlier_one_which_is_kept_with_its_date(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    first = _know(shelf, LIMIT, title="Limit")
    second = _know(shelf, NEW_LIMIT, event_time=1_750_000_000.0 + first.context.event_time)
    assert (second.outcome, second.former) == ("superseded", LIMIT)
    assert second.context.id == first.context.id
    assert second.context.title == ""
    third = _know(shelf, "The API limit of Acme is 300 a minute.", event_time=4_000_000_000.0)
    world.drain(library)
    _, chunks = shelf.get(third.context.id)
    day = datetime.fromtimestamp(second.context.event_time, UTC).date()
    assert [(chunk.heading, chunk.content) for chunk in chunks] == [
        ("", "The API limit of Acme is 300 a minute."),
        ("Formerly", f"Until 2096-10-02: {NEW_LIMIT}"),
        ("Formerly", f"Until {day}: {LIMIT}"),
    ]


def test_what_held_is_found_where_the_past_is_asked_for(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    _know(shelf, LIMIT)
    _know(shelf, NEW_LIMIT)
    world.drain(library)
    for question, told in (
        ("API limit of Acme", [NEW_LIMIT]),
        ("former API limit of Acme", [LIMIT, NEW_LIMIT]),
    ):
        hits = shelf.ask(UnifiedQuery(text=question, top_k=5)).hits
        assert sorted(_told(hit) for hit in hits) == sorted(told)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"event_time": 2_000_000_000.0}, {"event_time": 1_000_000_000.0}),
        ({"confidence": 8.0}, {"confidence": 3.0}),
        ({"entities": ("Acme GmbH",)}, {"entities": ("Acme Ltd",)}),
        ({"raw_type": "page", "raw_id": "a"}, {"raw_type": "page", "raw_id": "b"}),
    ],
    ids=["an earlier time", "less sure", "another Acme", "another source"],
)
def test_what_is_not_surely_newer_supersedes_nothing(
    shelf: Shelf, earlier: dict[str, Any], later: dict[str, Any]
) -> None:
    _know(shelf, LIMIT, **earlier)
    stored = _know(shelf, NEW_LIMIT, **later)
    assert stored.outcome in {"added", "merged"}
    assert NEW_LIMIT in _text(shelf, stored)
    assert "Formerly" not in str(shelf.get(stored.context.id))


@pytest.mark.parametrize(
    ("earlier", "later", "is_superseded"),
    [
        ("Acme's size limit is 30 MB.", "Acme's size limit is 50 MB.", False),
        ("The deploy branch is master.", "The deploy branch is now main.", False),
        ("Acme's size limit is 30 MB.", "Acme's size limit is now 50 MB.", True),
    ],
)
def test_under_another_title_only_a_stated_change_of_a_named_subject_supersedes(
    shelf: Shelf, earlier: str, later: str, is_superseded: bool
) -> None:
    _know(shelf, earlier, title="Staging")
    stored = _know(shelf, later, title="Production")
    assert (stored.outcome == "superseded") == is_superseded


def test_a_subject_is_named_where_it_is_stored_as_a_name(library: Library, shelf: Shelf) -> None:
    old, new = "公寓的租金是900欧元。", "公寓的租金是950欧元。"
    _know(shelf, old)
    assert _know(shelf, new).outcome in {"added", "merged"}
    other = library.shelf(BOB)
    _know(other, old, entities=("公寓",))
    assert _know(other, new).outcome == "superseded"
    third = library.shelf(Identity(user_id="eve"))
    third.people.save_entity(NewEntity(name="公寓"))
    _know(third, old)
    assert _know(third, new).outcome == "superseded"


def test_other_lines_of_merged_knowledge_hold_on_and_a_note_is_left_alone(library: Library) -> None:
    shelf = library.shelf(ANN)
    first = _know(shelf, f"{LIMIT}\nThe upload limit of Acme is 5 MB.")
    changed = _know(shelf, NEW_LIMIT)
    assert changed.context.id == first.context.id
    assert _text(shelf, changed).startswith(f"The upload limit of Acme is 5 MB.\n{NEW_LIMIT}\n")
    other = library.shelf(BOB)
    note = _know(other, f"Notes on Acme\n{LIMIT}")
    _know(other, NEW_LIMIT)
    assert LIMIT in _text(other, note)
    assert "Formerly" not in str(other.get(note.context.id))


def test_what_merges_later_leaves_what_held_before(shelf: Shelf) -> None:
    _know(shelf, LIMIT)
    changed = _know(shelf, NEW_LIMIT)
    again = _know(shelf, f"{NEW_LIMIT} (by contract)")
    assert again.outcome == "merged"
    assert again.context.id == changed.context.id
    assert [chunk.heading for chunk in shelf.get(again.context.id)[1]] == ["", "Formerly"]


def test_a_memory_is_superseded_by_a_memory_alone(shelf: Shelf) -> None:
    _know(shelf, LIMIT)
    kept = shelf.memories.remember(LIMIT, importance=3)
    assert kept.outcome == "added"
    changed = shelf.memories.remember(NEW_LIMIT, importance=8)
    assert (changed.outcome, changed.context.id) == ("superseded", kept.context.id)
    assert changed.context.memory_layer == 2
