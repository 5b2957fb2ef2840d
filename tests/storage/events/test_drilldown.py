from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from storage.events import drilldown
from storage.events.drilldown import NO_VECTOR, OWN, EventHit
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, TimeRange, TimeType

ANN = Identity("ann")


def at(year: int, month: int, day: int, *clock: int) -> float:
    hour, minute, second = (*clock, 0, 0, 0)[:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


def add(shelf: Shelf, when: float, text: str) -> str:
    new = NewContext(context_type=ContextType.EVENT, title="", text=text, event_time=when)
    return shelf.add(new).context.id


def build(shelf: Shelf, told: dict[str, str] | None = None) -> None:
    """Builds all summaries; those of given buckets say what is given."""
    for level in (1, 2, 3):
        for due in shelf.events.review(level, 4e9, 1000).due:
            text = (told or {}).get(due.bucket.label) or shelf.events.extract(due, 1000)
            shelf.events.keep(due, text, "extractive")


def ways(hit: EventHit) -> list[str]:
    return [step.time_bucket for step in hit.path]


def contents(hits: tuple[EventHit, ...]) -> list[str]:
    return [hit.hit.chunk.content for hit in hits]


@pytest.fixture
def shelf(library: Library, world: ModuleType) -> Shelf:
    shelf = library.shelf(ANN)
    add(shelf, at(2026, 10, 1, 9), "planted beans")
    add(shelf, at(2026, 10, 1, 12), "saw the dentist")
    add(shelf, at(2026, 10, 20), "sold the car")
    add(shelf, at(2026, 12, 24), "sang carols")
    build(shelf)
    world.drain(library)
    return shelf


def test_an_event_is_found_down_through_its_summaries_and_straight(shelf: Shelf) -> None:
    found = shelf.events.search("beans", None, 5)
    first, second = found.events[:2]
    assert found.mode == "hybrid"
    assert (first.hit.chunk.content, first.hit.score) == ("planted beans", first.own)
    assert first.hit.matched_terms == ("beans",)
    assert ways(first)[-1] == "2026-10-01"
    assert second.hit.chunk.content == "saw the dentist"
    assert second.hit.score == second.blended
    assert second.own is not None
    assert second.hit.score > second.own
    assert all(hit.hit.context.hierarchy_level == 0 for hit in found.events)


def test_the_blended_score_is_half_its_own_and_half_what_leads_to_it(shelf: Shelf) -> None:
    found = shelf.events.search("beans", None, 5)
    summary_of = {hit.hit.context.time_bucket: hit for hit in found.summaries}
    event = found.events[0]
    assert ways(event) == ["2026-10-01"]
    assert event.blended is not None
    assert event.own is not None
    above = summary_of["2026-10-01"].hit.score
    assert event.blended == pytest.approx(OWN * event.own + (1 - OWN) * above)


def test_the_query_chooses_the_summaries(shelf: Shelf) -> None:
    for query in ("beans", "carols"):
        (summary,) = shelf.events.search(query, None, 1).summaries
        assert query in summary.hit.chunk.content
    assert len(shelf.events.search("beans", None, 5).summaries) == 3


def test_an_event_that_its_summary_alone_speaks_of_is_reached(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    add(shelf, at(2026, 10, 1), "moved boxes all day")
    add(shelf, at(2026, 11, 1), "rain")
    build(shelf, {"2026-10": "The year of the relocation to Lisbon"})
    world.drain(library)
    (hit,) = shelf.events.search("relocation Lisbon", None, 1).events
    assert hit.hit.chunk.content == "moved boxes all day"
    assert ways(hit) == ["2026-10", "2026-W40", "2026-10-01"]
    assert hit.own is not None
    assert hit.hit.score == hit.blended
    assert hit.hit.score > hit.own


def test_where_there_are_too_many_events_the_best_days_are_opened(
    library: Library, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = library.shelf(ANN)
    for day in range(5, 10):
        add(shelf, at(2026, 10, day), f"moved boxes {day}")
    build(shelf, {"2026-10-06": "The relocation to Lisbon"})
    world.drain(library)
    monkeypatch.setattr(drilldown, "MOST_REACHED", 1)
    found = shelf.events.search("relocation Lisbon", None, 5)
    assert contents(found.events) == ["moved boxes 6"]


def test_an_event_in_no_summary_is_found_straight(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
    add(shelf, at(2026, 10, 1), "planted beans")
    world.drain(library)
    (hit,) = shelf.events.search("beans", None, 5).events
    assert (hit.path, hit.blended, hit.hit.score) == ((), None, hit.own)


def test_what_is_not_embedded_counts_as_given_in_the_hierarchy(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    add(shelf, at(2026, 10, 1), "planted beans")
    world.drain(library)
    add(shelf, at(2026, 10, 1, 9), "rain")
    build(shelf)
    found = shelf.events.search("beans", None, 5)
    rain = next(hit for hit in found.events if hit.hit.chunk.content == "rain")
    above = {hit.hit.context.time_bucket: hit.hit.score for hit in found.summaries}
    assert rain.own is None
    assert rain.hit.dense is None
    assert rain.blended == pytest.approx(OWN * NO_VECTOR + (1 - OWN) * above[ways(rain)[-1]])


def test_without_any_vector_words_find(library: Library) -> None:
    shelf = library.shelf(ANN)
    add(shelf, at(2026, 10, 1), "planted beans")
    add(shelf, at(2026, 12, 1), "sang carols")
    build(shelf)
    found = shelf.events.search("beans", None, 5)
    assert found.mode == "lexical"
    assert contents(found.events) == ["planted beans"]
    assert found.summaries


def test_no_event_outside_the_range_is_found_by_either_way(shelf: Shelf) -> None:
    window = TimeRange(at(2026, 10, 1, 10), at(2026, 10, 31))
    found = shelf.events.search("beans", window, 100)
    assert sorted(contents(found.events)) == ["saw the dentist", "sold the car"]
    buckets = {hit.hit.context.time_bucket for hit in found.summaries}
    assert buckets <= {"2026-10", "2026-W40", "2026-10-01", "2026-W43", "2026-10-20"}
    assert "2026-10-01" in {step for hit in found.events for step in ways(hit)}


def test_within_a_range_nothing_is_too_far_from_the_query(shelf: Shelf) -> None:
    assert shelf.events.search("zzyzx", None, 10).events == ()
    window = TimeRange(at(2026, 10, 1), at(2026, 10, 31))
    found = shelf.events.search("zzyzx", window, 10)
    assert len(found.events) == 3
    assert found.summaries


def test_the_beginning_of_time_is_a_bound(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
    add(shelf, -86_400 * 3, "before it all")
    add(shelf, 0, "at the epoch")
    build(shelf)
    world.drain(library)
    found = shelf.events.search("before epoch", TimeRange(0, None), 10)
    assert contents(found.events) == ["at the epoch"]
    found = shelf.events.search("before epoch", TimeRange(None, -1), 10)
    assert contents(found.events) == ["before it all"]


def test_a_range_of_another_time_leaves_summaries_open(shelf: Shelf) -> None:
    window = TimeRange(at(2020, 1, 1), None, TimeType.CREATE)
    assert len(shelf.events.search("beans", window, 10).events) == 4
    assert shelf.events.search("beans", TimeRange(None, 0, TimeType.CREATE), 10).events == ()


@pytest.mark.parametrize("other", [Identity("bob"), Identity("ann", "laptop")])
def test_every_hop_sees_what_the_identity_sees(
    library: Library, shelf: Shelf, world: ModuleType, other: Identity
) -> None:
    foreign = library.shelf(other)
    add(foreign, at(2026, 10, 1, 8), "planted beans too")
    build(foreign)
    build(shelf)
    world.drain(library)
    assert contents(foreign.events.search("beans", None, 100).events) == ["planted beans too"]
    seen = contents(shelf.events.search("beans", None, 100).events)
    assert ("planted beans too" in seen) is (other.user_id == "ann")
    with library.database.write() as connection:  # even if a hop led to somebody else's event
        connection.execute(
            "INSERT OR IGNORE INTO children SELECT p.seq, c.seq FROM contexts p, contexts c"
            " WHERE p.user_id <> c.user_id OR p.device_id <> c.device_id"
        )
    assert contents(foreign.events.search("beans", None, 100).events) == ["planted beans too"]
    seen = contents(shelf.events.search("beans", None, 100).events)
    assert ("planted beans too" in seen) is (other.user_id == "ann")


def test_scores_stand_between_0_and_1_and_order_the_events(shelf: Shelf) -> None:
    for query in ("beans", "dentist car", "sang planted", "2026"):
        found = shelf.events.search(query, None, 10)
        scores = [hit.hit.score for hit in found.events]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        for hit in found.events:
            known: list[Any] = [score for score in (hit.own, hit.blended) if score is not None]
            assert hit.hit.score <= max(known)


def test_an_event_of_several_chunks_counts_once(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
    add(shelf, at(2026, 10, 1), "Beans grow slowly in the garden. " * 150)
    build(shelf)
    world.drain(library)
    assert len(shelf.events.search("beans garden", None, 10).events) == 1
