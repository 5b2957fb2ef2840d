import time

import pytest

from storage.library import Library, Shelf
from storage.memory.browsing import Memory
from storage.memory.memories import Memories
from storage.memory.promotion import MUCH_USED, UNUSED_SECONDS, weight
from storage.models import (
    ContextType,
    Identity,
    MemoryLayer,
    NewContext,
    NewEntry,
    SearchFilter,
    Stored,
)

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")
TEA = "Ann likes her tea strong with a little milk and no sugar at all"
TEA_AGAIN = "Ann likes her tea strong with a little milk and no sugar"
BEES = "Bob keeps bees behind the old brewery"


@pytest.fixture
def memories(library: Library) -> Memories:
    return library.shelf(ANN).memories


def _use(library: Library, stored: Stored, times: int = 1) -> None:
    for _ in range(times):
        entry = NewEntry(
            session_id="s",
            kind="call",
            time=time.time(),
            action="query",
            is_recall=True,
            context_ids=(stored.context.id,),
            read_ids=(stored.context.id,),
        )
        library.entries.record(ANN, entry)


def _age(library: Library, stored: Stored, seconds: float) -> None:
    with library.database.write() as connection:
        connection.execute(
            "UPDATE contexts SET update_time = update_time - ? WHERE id = ?",
            (seconds, stored.context.id),
        )


def _layers(memories: Memories) -> dict[MemoryLayer, list[str]]:
    return {
        layer: [each.opening for each in memories.listed(layer, 100)]
        for layer in MemoryLayer
        if layer is not MemoryLayer.RECENT
    }


def _know(library: Library, text: str) -> Stored:
    new = NewContext(context_type=ContextType.KNOWLEDGE, title="", text=text)
    return library.shelf(ANN).add(new)


@pytest.mark.parametrize(("importance", "layer"), [(10.0, 2), (6.0, 2), (5.99, 4), (0.0, 4)])
def test_what_is_important_belongs_to_layer_2_and_the_rest_to_layer_4(
    memories: Memories, importance: float, layer: int
) -> None:
    stored = memories.remember(TEA, importance=importance, entities=["Ann"], keywords=["tea"])
    assert (stored.outcome, stored.context.memory_layer) == ("added", layer)
    assert stored.context.importance == importance
    assert (stored.context.entities, stored.context.keywords) == (("Ann",), ("tea",))


def test_what_is_remembered_is_found_by_words_and_by_layer(
    library: Library, shelf: Shelf, memories: Memories
) -> None:
    stored = memories.remember(TEA)
    _know(library, BEES)
    (hit,) = shelf.search("tea", SearchFilter(memory_layers=(2,)), 5).hits
    assert hit.context.id == stored.context.id
    assert shelf.search("tea", SearchFilter(memory_layers=(3, 4)), 5).hits == ()
    assert shelf.count(SearchFilter(memory=True)) == 1
    assert shelf.count(SearchFilter(memory=False)) == 1


def test_memories_and_knowledge_never_merge_into_each_other(
    library: Library, memories: Memories
) -> None:
    known = _know(library, TEA)
    remembered = memories.remember(TEA)
    assert (known.outcome, remembered.outcome) == ("added", "added")
    assert _know(library, TEA_AGAIN).context.id == known.context.id
    assert memories.remember(TEA_AGAIN).context.id == remembered.context.id
    assert library.shelf(ANN).get(known.context.id)[0].memory_layer == 0
    assert library.shelf(ANN).get(remembered.context.id)[0].memory_layer == 2


@pytest.mark.parametrize(
    ("first", "second", "layer"), [(3.0, 8.0, 2), (8.0, 3.0, 2), (3.0, 4.0, 4), (7.0, 9.0, 2)]
)
def test_what_is_said_again_has_the_higher_importance_and_the_layer_of_it(
    memories: Memories, first: float, second: float, layer: int
) -> None:
    one = memories.remember(TEA, importance=first)
    again = memories.remember(f"{TEA_AGAIN} honey", importance=second)
    assert (again.outcome, again.context.id) == ("merged", one.context.id)
    assert again.context.importance == max(first, second)
    assert again.context.memory_layer == layer
    ((_, text),) = memories.select([_number(memories, one)], MemoryLayer(layer))
    assert text == f"{TEA}\n{TEA_AGAIN} honey"


def _number(memories: Memories, stored: Stored) -> int:
    (found,) = memories.doomed(ids=[stored.context.id]).memories
    return found.number


def test_what_comes_back_to_layer_2_begins_to_be_used_anew(
    library: Library, memories: Memories
) -> None:
    stored = memories.remember(TEA)
    _use(library, stored, MUCH_USED)
    (moved,) = memories.persist()
    assert (moved.context.id, moved.context.memory_layer) == (stored.context.id, 4)
    again = memories.remember(TEA)
    assert (again.context.id, again.context.memory_layer) == (stored.context.id, 2)
    assert memories.persist() == []


def test_layer_2_is_ordered_by_importance_then_by_use_and_freshness(
    library: Library, memories: Memories
) -> None:
    plain, old, used, vital = (
        memories.remember(f"{word} {word}ish {word}ness", importance=importance)
        for word, importance in [("oak", 6.5), ("elm", 6.5), ("ash", 6.5), ("yew", 9.0)]
    )
    _use(library, used, 3)
    _age(library, old, UNUSED_SECONDS * 3)
    order = [each.context.id for each in memories.listed(MemoryLayer.IMPORTANT, 10)]
    assert order == [each.context.id for each in (vital, used, plain, old)]
    page = memories.listed(MemoryLayer.IMPORTANT, 2, 1)
    assert [each.context.id for each in page] == order[1:3]


def test_a_weight_is_its_importance_and_at_most_two_points_more() -> None:
    now = 1e9
    assert weight(6.0, 0, now, now) == 7.0
    assert weight(6.0, 0, now - UNUSED_SECONDS, now) == 6.5
    assert weight(6.0, MUCH_USED, now - UNUSED_SECONDS, now) == 7.0
    assert weight(6.0, 0, now + 9, now) == 7.0  # a clock that was set back
    assert weight(10.0, 10**9, now, now) == pytest.approx(12.0)


def test_what_is_much_used_or_not_used_for_long_settles_in_layer_4(
    library: Library, memories: Memories
) -> None:
    used, old, old_but_used, fresh = (
        memories.remember(f"{word} {word}ish {word}ness") for word in ("oak", "elm", "ash", "yew")
    )
    _use(library, used, MUCH_USED)
    _age(library, old, UNUSED_SECONDS + 1)
    _age(library, old_but_used, UNUSED_SECONDS + 1)
    _use(library, old_but_used)
    assert memories.stats().persistable == 2
    assert {each.context.id for each in memories.persist()} == {used.context.id, old.context.id}
    assert memories.persist() == []
    left = {each.context.id for each in memories.listed(MemoryLayer.IMPORTANT, 10)}
    assert left == {old_but_used.context.id, fresh.context.id}
    (named,) = memories.persist([_number(memories, fresh)])
    assert named.context.memory_layer == 4
    assert len(memories.persist(unused_seconds=0)) == 1


def test_a_number_names_the_same_memory_whatever_comes_and_goes(
    library: Library, memories: Memories
) -> None:
    stored = memories.remember(TEA)
    (listed,) = memories.listed(MemoryLayer.IMPORTANT, 10)
    memories.remember(BEES, importance=10)
    memories.remember(TEA_AGAIN, importance=9)
    ((selected, text),) = memories.select([listed.number, 10**9], MemoryLayer.IMPORTANT)
    assert (selected.context.id, text) == (stored.context.id, TEA)
    assert memories.select([listed.number], MemoryLayer.SEMANTIC) == []
    library.shelf(ANN).forget([stored.context.id])
    memories.remember(TEA)
    assert memories.select([listed.number], MemoryLayer.IMPORTANT) == []


def test_updated_knowledge_stays_the_memory_it_is(library: Library, memories: Memories) -> None:
    stored = memories.remember(TEA, session_id="monday")
    _use(library, stored, 2)
    memories.remember(f"{TEA_AGAIN} honey", session_id="tuesday")
    (memory,) = memories.listed(MemoryLayer.IMPORTANT, 10, session_id="monday")
    assert (memory.uses, memory.context.merge_count) == (2, 1)


def test_nobody_else_lists_selects_moves_or_forgets_a_memory(library: Library) -> None:
    mine = library.shelf(ANN).memories
    mine.remember(TEA)
    (memory,) = mine.listed(MemoryLayer.IMPORTANT, 10)
    for other in (BOB, PHONE):
        others = library.shelf(other).memories
        assert others.remember(TEA).outcome == "added"
        assert memory.number not in {each.number for each in _listed(others)}
        assert others.select([memory.number], MemoryLayer.IMPORTANT) == []
        assert others.persist([memory.number]) == []
        doomed = others.doomed(numbers=[memory.number], ids=[memory.context.id])
        assert (doomed.entries, doomed.memories) == ((), ())
        assert others.forget(mine.doomed(numbers=[memory.number])) == (0, 0)
    assert _layers(mine)[MemoryLayer.IMPORTANT] == [TEA, TEA]  # with the phone's


def _listed(memories: Memories) -> list[Memory]:
    return memories.listed(MemoryLayer.IMPORTANT, 10)


def test_memories_survive_a_restart(library: Library, memories: Memories) -> None:
    memories.remember(TEA, importance=9)
    memories.remember(BEES, importance=2)
    before = _layers(memories)
    library.close()
    again = Library(library.directory, library.models.current()[1])
    try:
        assert _layers(again.shelf(ANN).memories) == before
    finally:
        again.close()
