import time
from collections.abc import Callable
from typing import Any

import pytest

from storage.library import Library, Shelf
from storage.memory.memories import Memories
from storage.memory.summaries import MOST_PARTS, DueSession
from storage.models import (
    IDLE_SECONDS,
    Context,
    ContextType,
    Identity,
    MemoryLayer,
    NewContext,
    NewEntry,
    SearchFilter,
)

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")
LONG_AGO = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


@pytest.fixture
def memories(library: Library) -> Memories:
    return library.shelf(ANN).memories


def record(
    library: Library, said: str, session_id: str = "monday", owner: Identity = ANN, **given: Any
) -> int:
    new = {
        "session_id": session_id,
        "client": "crib-test",
        "kind": "call",
        "time": LONG_AGO,
        "action": "write_file",
        "said": said,
        **given,
    }
    return library.entries.record(owner, NewEntry(**new))


def sum_up(memories: Memories, **given: Any) -> list[Context]:
    due, left = memories.due_sessions(100, **given)
    assert left == 0
    kept = [memories.keep(each, memories.extract(each, 1_200), "extractive") for each in due]
    return [each for each in kept if each is not None]


def _texts(memories: Memories) -> list[str]:
    numbers = [each.number for each in memories.listed(MemoryLayer.SUMMARY, 100)]
    return [text for _, text in memories.select(numbers, MemoryLayer.SUMMARY)]


def test_a_session_that_ended_is_summed_up_once(library: Library, memories: Memories) -> None:
    record(library, "The heron came.")
    record(library, "The heron left.", time=LONG_AGO + 3_600, importance=4.0)
    (made,) = sum_up(memories)
    assert made.memory_layer == 3
    assert made.title == "Session with crib-test, 2023-11-14 22:13 to 23:13 UTC"
    assert (made.event_time, made.importance) == (LONG_AGO, 4.0)
    assert dict(made.metadata) == {"summarizer": "extractive", "session": "monday", "entries": 2}
    (text,) = _texts(memories)
    assert text.index("The heron came.") < text.index("The heron left.")
    assert sum_up(memories) == []
    assert sum_up(memories, named=["monday"]) == []
    assert library.entries.count(ANN) == 2


def test_a_session_that_goes_on_waits_until_it_is_named(
    library: Library, memories: Memories
) -> None:
    record(library, "The heron came.", "now", time=time.time() - IDLE_SECONDS + 60)
    record(library, "The kestrel came.", "mine")
    assert memories.stats("mine").unsummed == 0
    assert sum_up(memories, but="mine") == []
    assert len(sum_up(memories, named=["now", "mine"])) == 2


def test_a_session_that_went_on_is_summed_up_anew_in_the_same_place(
    library: Library, memories: Memories
) -> None:
    record(library, "The heron came.")
    (first,) = sum_up(memories)
    record(library, "The kestrel came.", time=LONG_AGO + 60)
    (again,) = sum_up(memories)
    assert again.id == first.id
    (text,) = _texts(memories)
    assert "heron" in text
    assert "kestrel" in text


def test_nothing_is_told_of_a_session_that_only_looked(
    library: Library, memories: Memories
) -> None:
    record(library, "1 hit", is_recall=True)
    assert memories.stats().unsummed == 0
    assert sum_up(memories) == []


def test_what_changes_while_a_summary_is_written_makes_it_due_again(
    library: Library, memories: Memories
) -> None:
    entry = record(library, "The secret heron.")
    record(library, "The kestrel came.")
    ((due,), _) = memories.due_sessions(1)
    library.entries.forget(ANN, [entry])
    assert memories.keep(due, "The secret heron.", "client:tiny") is None
    assert len(sum_up(memories)) == 1
    assert "heron" not in str(_texts(memories))


def _forget_entry(library: Library, entry: int, _known: str) -> None:
    library.entries.forget(ANN, [entry])


def _forget_what_it_told_of(library: Library, _entry: int, known: str) -> None:
    library.shelf(ANN).forget([known])


@pytest.mark.parametrize("forget", [_forget_entry, _forget_what_it_told_of])
def test_a_summary_tells_no_more_of_what_was_forgotten(
    library: Library, shelf: Shelf, memories: Memories, forget: Callable[[Library, int, str], None]
) -> None:
    new = NewContext(context_type=ContextType.KNOWLEDGE, title="", text="the secret heron")
    known = shelf.add(new).context.id
    entry = record(library, "The secret heron.", context_ids=(known,))
    record(library, "The kestrel came.")
    (made,) = sum_up(memories)
    teller = record(library, "secret heron", context_ids=(made.id,), is_recall=True)
    forget(library, entry, known)
    assert _texts(memories) == []
    assert [each.said for each in memories.entries([teller])] == [""]
    assert len(sum_up(memories)) == 1
    (text,) = _texts(memories)
    assert "kestrel" in text
    assert "heron" not in text


def test_a_summary_that_was_forgotten_itself_is_not_made_again_until_more_happens(
    library: Library, memories: Memories
) -> None:
    record(library, "The heron came.")
    (made,) = sum_up(memories)
    assert memories.forget(memories.doomed(ids=[made.id])) == (0, 1)
    assert library.entries.count(ANN) == 1
    assert sum_up(memories) == []
    record(library, "The kestrel came.", time=LONG_AGO + 60)
    assert len(sum_up(memories)) == 1


def test_a_forgotten_session_takes_all_that_came_from_it(
    library: Library, memories: Memories
) -> None:
    record(library, "The heron came.", importance=9.0)
    record(library, "The kestrel came.", "tuesday")
    memories.remember("Herons stand still", session_id="monday")
    memories.promote()
    assert len(sum_up(memories)) == 2
    doomed = memories.doomed(session_id="monday")
    layers = sorted(each.context.memory_layer for each in doomed.memories)
    assert (len(doomed.entries), layers) == (1, [2, 2, 3])
    assert memories.forget(doomed) == (1, 3)
    assert library.shelf(ANN).count(SearchFilter(memory=True)) == 1
    assert [each.id for each in library.entries.sessions(ANN, 10)] == ["tuesday"]


def test_each_device_and_user_has_its_own_summaries(library: Library, memories: Memories) -> None:
    for owner in (ANN, PHONE, BOB):
        record(library, "The heron came.", owner=owner)
    assert {each.identity for each in sum_up(memories)} == {ANN, PHONE}
    assert library.shelf(BOB).count(SearchFilter(memory=True)) == 0
    assert library.shelf(BOB).memories.due_sessions(9, named=["monday"])[0] != []
    assert library.shelf(PHONE).memories.stats().layers[MemoryLayer.SUMMARY].count == 1


def test_of_a_long_session_the_most_important_is_told(library: Library, memories: Memories) -> None:
    new = [
        NewEntry(
            session_id="monday",
            kind="call",
            time=LONG_AGO + number,
            action="write_file",
            said=f"Line {number}.",
            importance=9.0 if number == 3 else number / 1000,
        )
        for number in range(MOST_PARTS + 10)
    ]
    library.entries.record_all([(ANN, each) for each in new])
    ((due,), _) = memories.due_sessions(1)
    said = [each.said for each in due.entries]
    assert said == ["Line 3.", *(f"Line {n}." for n in range(11, MOST_PARTS + 10))]
    text = memories.extract(due, 1_200)
    assert 0 < len(text) <= 1_200 + MOST_PARTS


def test_a_session_says_when_it_was(library: Library) -> None:
    two_days = DueSession(ANN, "s", "", "", LONG_AGO, LONG_AGO + 86_400, (), "")
    assert two_days.title == "Session, 2023-11-14 22:13 to 2023-11-15 22:13 UTC"
    record(library, "yes", target="a.md")
    ((due,), _) = library.shelf(ANN).memories.due_sessions(1)
    assert [(part.label, part.text) for part in due.parts] == [("22:13", "write_file a.md\nyes")]


@pytest.mark.parametrize("outcome", ["tool_failed", "permission_denied", "declined", "cancelled"])
def test_what_failed_is_not_summed_up(library: Library, outcome: str) -> None:
    memories = library.shelf(ANN).memories
    record(library, "no", outcome=outcome, importance=9.0)
    assert memories.due_sessions(1) == ([], 0)
    record(library, "yes", importance=3.0)
    ((due,), _) = memories.due_sessions(1)
    assert [entry.said for entry in due.entries] == ["yes"]
    assert [each.importance for each in sum_up(memories)] == [3.0]
