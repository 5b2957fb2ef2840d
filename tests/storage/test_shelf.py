from __future__ import annotations

import pytest

from storage.errors import ContextNotFoundError
from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter, TimeRange, Turn

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")


def _event(text: str, event_time: float = 0.0, **given: object) -> NewContext:
    return NewContext(
        context_type=ContextType.EVENT,
        title="",
        text=text,
        event_time=event_time,
        **given,  # type: ignore[arg-type]  # whatever a test gives
    )


def test_events_are_appended_however_alike_they_are(library: Library) -> None:
    shelf = library.shelf(ANN)
    stored = [shelf.add(_event("watered the beans", raw_type="log", raw_id="1")) for _ in range(2)]
    assert [each.outcome for each in stored] == ["added", "added"]
    assert len({each.context.id for each in stored}) == 2
    assert stored[0].context.time_bucket == "1970-01-01T00:00:00Z"
    assert stored[0].context.hierarchy_level == 0


@pytest.mark.parametrize("event_time", [-1e18, -62135596800.0, 253402300799.0, 1e18])
def test_an_event_may_lie_at_any_end_of_the_calendar(library: Library, event_time: float) -> None:
    stored = library.shelf(ANN).add(_event("far away", event_time))
    assert stored.context.event_time == event_time
    assert stored.context.time_bucket.endswith("Z")


def test_a_conversation_keeps_its_turns_apart(library: Library) -> None:
    turns = (Turn("Ann, 8 May 2023", "Where are the keys?"), Turn("Bob, 8 May 2023", "In the jar."))
    shelf = library.shelf(ANN)
    stored = shelf.add(NewContext(title="Keys", turns=turns, raw_type="chat", raw_id="1"))
    _, chunks = shelf.get(stored.context.id)
    assert [(each.heading, each.content) for each in chunks] == [
        (turn.heading, turn.content) for turn in turns
    ]
    assert chunks[1].start == len(turns[0].content) + 2
    (hit,) = shelf.search("jar", SearchFilter(), 1).hits
    assert hit.chunk.heading == "Bob, 8 May 2023"


def test_a_search_is_narrowed_to_kinds_and_levels(library: Library) -> None:
    shelf = library.shelf(ANN)
    shelf.add(NewContext(title="d", text="heron", raw_type="text", raw_id="d"))
    shelf.add(NewContext(context_type=ContextType.KNOWLEDGE, title="", text="heron facts"))
    shelf.add(_event("heron seen"))
    for kind in ContextType:
        only = SearchFilter(context_types=(kind,))
        (hit,) = shelf.search("heron", only, 5).hits
        assert hit.context.context_type is kind
        assert shelf.count(only) == 1
    assert shelf.count(SearchFilter(levels=(1, 2, 3))) == 2  # levels are about events alone
    assert shelf.count(SearchFilter(levels=(0,))) == 3


def test_keywords_and_summary_are_found_by_their_words(library: Library) -> None:
    shelf = library.shelf(ANN)
    shelf.add(_event("watered the beans", keywords=("garden",), summary="chores of spring"))
    for query in ("garden", "chores"):
        (hit,) = shelf.search(query, SearchFilter(), 1, alpha=0.0).hits
        assert hit.matched_terms == (query,)


def test_what_is_forgotten_is_gone_for_its_user_alone(library: Library) -> None:
    mine = library.shelf(ANN).add(_event("mine")).context.id
    phones = library.shelf(PHONE).add(_event("the phone's")).context.id
    bobs = library.shelf(BOB).add(_event("bob's")).context.id
    assert library.shelf(PHONE).forget([mine, bobs]) == 0
    assert library.shelf(ANN).forget([mine, phones, bobs, "no such"]) == 2
    for gone in (mine, phones):
        with pytest.raises(ContextNotFoundError, match=gone):
            library.shelf(ANN).get(gone)
    with pytest.raises(ContextNotFoundError):
        library.shelf(ANN).get(bobs)
    assert library.shelf(BOB).get(bobs)[0].id == bobs


def test_the_times_of_a_filter_hold_for_listings_too(library: Library) -> None:
    shelf = library.shelf(ANN)
    for moment in (0.0, 10.0, 20.0):
        shelf.add(_event(f"at {moment}", moment))
    within = SearchFilter(time_range=TimeRange(0, 10))
    assert sorted(each.event_time for each in shelf.contexts(within, 10)) == [0.0, 10.0]
    assert [each.event_time for each in shelf.contexts(within, 1, 1)] == [0.0]
