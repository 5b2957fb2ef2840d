import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from storage.database import Where
from storage.library import Library, Shelf
from storage.memory.memories import Memories
from storage.memory.promotion import promotable
from storage.models import ContextType, Identity, MemoryLayer, NewContext, NewEntry, SearchFilter

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")


@pytest.fixture
def memories(library: Library) -> Memories:
    return library.shelf(ANN).memories


def record(library: Library, target: str, *, owner: Identity = ANN, **given: Any) -> int:
    new = {
        "session_id": "monday",
        "kind": "call",
        "time": time.time(),
        "action": "write_file",
        "target": target,
        "said": f"Wrote {target}.",
        "importance": 7.0,
        **given,
    }
    return library.entries.record(owner, NewEntry(**new))


def _said(memories: Memories) -> dict[str, str]:
    found = memories.listed(MemoryLayer.IMPORTANT, 1000)
    return {
        each.context.title: memories.select([each.number], MemoryLayer.IMPORTANT)[0][1]
        for each in found
    }


def test_important_entries_become_memories_once_and_stay(
    library: Library, memories: Memories
) -> None:
    first = record(library, "a.md", arguments={"path": "a.md"}, importance=8.5)
    record(library, "b.md", importance=5.9)
    (made,) = memories.promote()
    assert (made.memory_layer, made.importance, made.title) == (2, 8.5, "write_file a.md")
    assert _said(memories) == {"write_file a.md": "write_file a.md\npath=a.md\nWrote a.md."}
    assert memories.promote() == []
    assert memories.promote([first]) == []
    assert library.entries.count(ANN) == 2
    (memory,) = memories.listed(MemoryLayer.IMPORTANT, 10, session_id="monday")
    assert memory.context.id == made.id


def test_a_failure_is_never_promoted_even_by_name(library: Library, memories: Memories) -> None:
    for outcome in ("tool_failed", "permission_denied", "declined", "cancelled", "timeout"):
        failed = record(library, f"{outcome}.md", importance=9.0, outcome=outcome)
        assert memories.promote() == []
        assert memories.promote([failed]) == []
    assert memories.stats().promotable == 0


def test_failures_are_neither_raised_by_repetition_nor_hide_what_succeeded(
    library: Library, memories: Memories
) -> None:
    for outcome in ("ok", "ok", "ok", "ok", "tool_failed"):
        last = record(library, "a.md", importance=4.0, outcome=outcome)
    assert [each.importance for each in library.entries.get(ANN, [last])] == [4.0]
    (made,) = memories.promote()
    assert (made.importance, made.metadata["outcome"]) == (7.0, "ok")


def test_what_only_looked_and_what_was_remembered_is_not_promoted(
    library: Library, memories: Memories
) -> None:
    stored = memories.remember("Ann likes tea")
    record(library, "tea", action="remember", context_ids=(stored.context.id,))
    recall = record(library, "cups", action="query", is_recall=True)
    assert memories.stats().promotable == 0
    assert memories.promote() == []
    (made,) = memories.promote([recall])  # by name
    assert made.importance == 7.0


def test_a_named_entry_is_kept_for_itself_however_little_it_matters(
    library: Library, memories: Memories
) -> None:
    slight = [record(library, "a.md", importance=1.0, said=f"{n} lines.") for n in range(2)]
    assert memories.promote() == []
    made = memories.promote([*slight, slight[0], 10**9])
    assert [each.importance for each in made] == [6.0, 6.0]
    assert memories.promote(slight) == []


def test_of_the_same_action_and_target_the_newest_speaks(
    library: Library, memories: Memories
) -> None:
    for number in range(3):
        record(library, "a.md", said=f"{number} lines.")
    (first,) = memories.promote()
    record(library, "a.md", said="9 lines.")
    (again,) = memories.promote()
    assert again.id == first.id
    assert _said(memories) == {"write_file a.md": "write_file a.md\n9 lines."}
    assert memories.promote() == []


@pytest.mark.parametrize("targets", [("a b", "a  b"), ("x" * 999 + "1", "x" * 999 + "2")])
def test_targets_that_are_merely_alike_are_promoted_apart_and_once(
    library: Library, memories: Memories, targets: tuple[str, str]
) -> None:
    for target in targets:
        record(library, target)
    assert len(memories.promote()) == 2
    assert memories.promote() == []


def test_what_is_promoted_neither_merges_nor_is_merged_into(
    library: Library, memories: Memories
) -> None:
    record(library, "a.md")
    text = "write_file a.md\nWrote a.md."
    remembered = memories.remember(text, title="write_file a.md")
    (made,) = memories.promote()
    assert made.id != remembered.context.id
    assert memories.remember(text).context.id == remembered.context.id


def test_each_device_and_user_has_its_own(library: Library, memories: Memories) -> None:
    for owner in (ANN, PHONE, BOB):
        record(library, "a.md", owner=owner)
    bobs = record(library, "b.md", owner=BOB)
    assert memories.promote([bobs]) == []
    made = memories.promote()
    assert {each.identity for each in made} == {ANN, PHONE}
    assert library.shelf(BOB).count(SearchFilter(memory=True)) == 0
    assert len(library.shelf(BOB).memories.promote()) == 2


def test_what_was_made_from_a_forgotten_entry_goes_with_it(
    library: Library, memories: Memories
) -> None:
    older = record(library, "a.md", said="old")
    newer = record(library, "a.md", said="new")
    memories.promote()
    doomed = memories.doomed(layer=MemoryLayer.RECENT, numbers=[newer])
    assert (len(doomed.entries), len(doomed.memories)) == (1, 1)
    assert memories.forget(doomed) == (1, 1)
    assert _said(memories) == {}
    memories.promote()
    assert _said(memories) == {"write_file a.md": "write_file a.md\nold"}
    library.entries.forget(ANN, [older])
    assert _said(memories) == {}
    assert memories.promote() == []


def test_what_was_made_from_an_entry_about_a_forgotten_context_goes_too(
    library: Library, shelf: Shelf, memories: Memories
) -> None:
    new = NewContext(context_type=ContextType.KNOWLEDGE, title="", text="Ann likes tea")
    known = shelf.add(new).context.id
    record(library, "tea", action="add_knowledge", context_ids=(known,))
    (made,) = memories.promote()
    teller = record(library, "", action="manage_memory", said="Ann, tea", context_ids=(made.id,))
    assert shelf.forget([known]) == 1
    assert shelf.count(SearchFilter()) == 0
    assert [each.said for each in memories.entries([teller])] == [""]
    assert memories.promote() == []


def test_who_forgets_what_was_promoted_forgets_what_it_says(
    library: Library, memories: Memories
) -> None:
    entry = record(library, "a.md")
    (made,) = memories.promote()
    memories.persist([memories.doomed(ids=[made.id]).memories[0].number])
    assert memories.forget(memories.doomed(ids=[made.id])) == (0, 1)
    (blank,) = memories.entries([entry])
    assert (blank.target, blank.said, dict(blank.arguments)) == ("", "", {})
    assert memories.promote() == []
    assert memories.promote([entry]) == []


def test_a_message_that_led_to_what_was_made_of_it_is_forgotten_with_it(
    library: Library, memories: Memories
) -> None:
    message = record(library, "", kind="message", action="prompt:remember", said="tea")
    (made,) = memories.promote()
    record(library, "", action="manage_memory", context_ids=(made.id,))  # links the message too
    assert memories.forget(memories.doomed(ids=[made.id])) == (0, 1)
    assert [each.said for each in memories.entries([message])] == [""]
    assert library.shelf(ANN).count(SearchFilter()) == 0


def test_two_that_promote_and_sum_up_at_once_make_one_of_each(
    library_of: Callable[..., Library], world: ModuleType
) -> None:
    libraries = [library_of(world.HashEmbedder()) for _ in range(2)]
    record(libraries[0], "a.md", time=1.7e9)

    def work(number: int) -> None:
        memories = libraries[number % 2].shelf(ANN).memories
        memories.promote()
        for due in memories.due_sessions(9)[0]:
            memories.keep(due, f"By {number}.", "extractive")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    layers = libraries[0].shelf(ANN).memories.stats().layers
    assert [layers[layer].count for layer in MemoryLayer] == [1, 1, 1, 0]


def test_what_matters_is_found_by_its_index(library: Library) -> None:
    record(library, "a.md")
    told: list[str] = []
    with library.database.read() as connection:
        connection.set_trace_callback(told.append)
        promotable(connection, Where("1", ()), 10)
        connection.set_trace_callback(None)
        plan = connection.execute(f"EXPLAIN QUERY PLAN {told[-1]}").fetchall()
    assert "entries_that_matter" in " ".join(row["detail"] for row in plan)
