import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.events.buckets import DAY, MONTH, WEEK, Bucket
from storage.library import Library, Shelf
from storage.models import Context, ContextType, Identity, NewContext, SearchFilter

ANN = Identity("ann")
LAPTOP = Identity("ann", "laptop")
BOB = Identity("bob")
FAR = 4e9


def at(year: int, month: int, day: int, *clock: int) -> float:
    hour, minute, second = (*clock, 0, 0, 0)[:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


def add(shelf: Shelf, when: float, text: str, **given: Any) -> str:
    plain: dict[str, Any] = {"title": "", "text": text, "event_time": when}
    new = NewContext(context_type=ContextType.EVENT, **plain | given)
    return shelf.add(new).context.id


def build(shelf: Shelf, until: float = FAR, level: int = MONTH, limit: int = 1000) -> list[str]:
    """Builds what is due, and says which buckets were written."""
    shelf.events.prune()
    written = []
    for each in range(DAY, level + 1):
        for due in shelf.events.review(each, until, limit).due:
            kept = shelf.events.keep(due, shelf.events.extract(due, 1000), "extractive")
            assert kept is not None
            written.append(kept.time_bucket)
    return written


def summaries(shelf: Shelf) -> dict[str, Context]:
    wanted = SearchFilter(context_types=(ContextType.EVENT,), levels=(1, 2, 3))
    return {context.time_bucket: context for context in shelf.contexts(wanted, 1000)}


def text_of(shelf: Shelf, context: Context) -> str:
    return "\n".join(chunk.content for chunk in shelf.get(context.id)[1])


def children(library: Library, context: Context) -> list[str]:
    with library.database.read() as connection:
        rows = connection.execute(
            "SELECT c.id, c.time_bucket, c.hierarchy_level FROM children h"
            " JOIN contexts p ON p.seq = h.parent_seq JOIN contexts c ON c.seq = h.child_seq"
            " WHERE p.id = ? ORDER BY c.event_time, c.hierarchy_level DESC",
            (context.id,),
        ).fetchall()
    return [row["time_bucket"] if row["hierarchy_level"] else row["id"] for row in rows]


def test_days_weeks_and_months_are_made_from_each_other(library: Library, shelf: Shelf) -> None:
    first = add(shelf, at(2026, 10, 1, 9), "planted beans", keywords=("garden",), importance=8)
    second = add(shelf, at(2026, 10, 1, 12), "saw Una", entities=("Una",), importance=2)
    add(shelf, at(2026, 10, 31), "sold the car")
    add(shelf, at(2026, 11, 1), "bought a bicycle", entities=("Una",))
    days = ["2026-10-01", "2026-10-31", "2026-11-01"]
    assert build(shelf) == [*days, "2026-W40", "2026-W44", "2026-10", "2026-11"]
    found = summaries(shelf)
    assert children(library, found["2026-10-01"]) == [first, second]
    assert children(library, found["2026-W44"]) == ["2026-10-31", "2026-11-01"]
    assert children(library, found["2026-10"]) == ["2026-W40", "2026-W44"]
    assert children(library, found["2026-11"]) == ["2026-W44"]
    day = found["2026-10-01"]
    assert (day.hierarchy_level, day.event_time, day.importance) == (1, at(2026, 10, 1), 8)
    assert (day.keywords, day.entities) == (("garden",), ("Una",))
    assert day.title == "Thursday, 1 October 2026"
    assert dict(found["2026-10"].metadata) == {"summarizer": "extractive", "events": 3}
    assert shelf.get(first)[0].parent_id == day.id
    assert day.parent_id == found["2026-W40"].id
    assert found["2026-W40"].parent_id == found["2026-10"].id


def test_a_week_that_straddles_two_months_is_a_child_of_both_and_counts_to_its_thursdays(
    library: Library, shelf: Shelf
) -> None:
    add(shelf, at(2026, 11, 30), "a walk in november")
    add(shelf, at(2026, 12, 2), "snow in december")
    build(shelf)
    found = summaries(shelf)
    assert children(library, found["2026-11"]) == children(library, found["2026-12"])
    assert children(library, found["2026-12"]) == ["2026-W49"]
    assert found["2026-W49"].parent_id == found["2026-12"].id
    assert text_of(shelf, found["2026-11"]) == "2026-11-30: a walk in november"
    assert text_of(shelf, found["2026-12"]) == "2026-12-02: snow in december"


def test_days_are_summed_up_as_they_begin_and_weeks_and_months_as_they_end(
    library: Library, shelf: Shelf
) -> None:
    for day in (29, 30):
        add(shelf, at(2026, 11, day), f"on day {day}")
    assert build(shelf, at(2026, 11, 28, 23)) == []
    assert build(shelf, at(2026, 11, 29)) == ["2026-11-29"]
    assert build(shelf, at(2026, 11, 29, 23, 59, 59)) == ["2026-W48"]
    assert build(shelf, at(2026, 11, 30, 1)) == ["2026-11-30"]
    assert build(shelf, at(2026, 12, 1)) == ["2026-11"]
    november = summaries(shelf)["2026-11"]
    assert children(library, november) == ["2026-W48", "2026-11-30"]  # no week has it yet
    assert build(shelf, at(2026, 12, 7)) == ["2026-W49", "2026-11"]
    assert summaries(shelf)["2026-11"].id == november.id
    assert children(library, november) == ["2026-W48", "2026-W49"]
    assert shelf.get(summaries(shelf)["2026-11-30"].id)[0].parent_id == (
        summaries(shelf)["2026-W49"].id
    )


def test_building_again_writes_nothing(shelf: Shelf, world: ModuleType) -> None:
    for day in range(1, 29):
        add(shelf, at(2026, 9, day), f"on day {day}")
    build(shelf)
    before = summaries(shelf)
    assert build(shelf) == []
    assert summaries(shelf) == before
    review = shelf.events.review(DAY, FAR, 100)
    assert (review.due, review.left, review.unchanged) == ((), 0, 28)


def test_a_late_event_makes_its_day_week_and_month_anew_in_their_places(shelf: Shelf) -> None:
    add(shelf, at(2026, 10, 1), "planted beans")
    add(shelf, at(2026, 10, 20), "sold the car")
    build(shelf)
    before = summaries(shelf)
    late = add(shelf, at(2026, 10, 1, 8), "overslept")
    assert build(shelf) == ["2026-10-01", "2026-W40", "2026-10"]
    after = summaries(shelf)
    assert {bucket: one.id for bucket, one in after.items()} == {
        bucket: one.id for bucket, one in before.items()
    }
    assert text_of(shelf, after["2026-10-01"]) == "planted beans\noverslept"
    assert shelf.get(late)[0].parent_id == after["2026-10-01"].id
    assert after["2026-10-01"].create_time == before["2026-10-01"].create_time
    assert shelf.search("overslept", SearchFilter(levels=(2,)), 5).hits


def test_a_forgotten_event_is_not_told_on(shelf: Shelf) -> None:
    secret = add(shelf, at(2026, 10, 1), "a secret", entities=("Una",), keywords=("hush",))
    add(shelf, at(2026, 10, 1, 9), "planted beans")
    build(shelf)
    before = summaries(shelf)
    assert shelf.forget([secret]) == 1
    assert shelf.search("secret", SearchFilter(), 10).hits == ()
    assert shelf.contexts(SearchFilter(entities=("Una",)), 10) == []
    for summary in summaries(shelf).values():
        assert (summary.keywords, summary.entities, summary.chunk_count) == ((), (), 0)
    assert build(shelf) == ["2026-10-01", "2026-W40", "2026-10"]
    after = summaries(shelf)
    assert after["2026-10"].id == before["2026-10"].id
    assert text_of(shelf, after["2026-10-01"]) == "planted beans"


def test_a_bucket_without_events_loses_its_summary(shelf: Shelf) -> None:
    only = add(shelf, at(2026, 10, 1), "planted beans")
    stays = add(shelf, at(2026, 12, 24), "sang")
    build(shelf)
    shelf.forget([only])
    assert shelf.events.prune() == 3
    assert shelf.events.prune() == 0
    assert set(summaries(shelf)) == {"2026-12-24", "2026-W52", "2026-12"}
    assert shelf.get(stays)[0].parent_id


def test_each_user_and_device_has_summaries_of_what_it_sees(library: Library) -> None:
    ann, laptop, bob = (library.shelf(one) for one in (ANN, LAPTOP, BOB))
    add(ann, at(2026, 10, 1), "at home")
    add(laptop, at(2026, 10, 1, 1), "on the laptop")
    add(bob, at(2026, 10, 1, 2), "elsewhere")
    for shelf in (ann, laptop, bob):
        build(shelf, level=DAY)
    texts = {
        shelf.identity: {text_of(shelf, one) for one in _summaries_of_day(shelf)}
        for shelf in (ann, laptop, bob)
    }
    assert texts == {
        ANN: {"at home\non the laptop", "on the laptop"},
        LAPTOP: {"on the laptop"},
        BOB: {"elsewhere"},
    }
    for shelf in (ann, laptop, bob):
        assert build(shelf, level=DAY) == []


def _summaries_of_day(shelf: Shelf) -> list[Context]:
    return shelf.contexts(SearchFilter(levels=(1,)), 10)


def test_events_that_change_after_the_review_are_left_for_the_next(shelf: Shelf) -> None:
    add(shelf, at(2026, 10, 1), "planted beans")
    (due,) = shelf.events.review(DAY, FAR, 10).due
    add(shelf, at(2026, 10, 1, 9), "watered them")
    assert shelf.events.keep(due, "planted beans", "extractive") is None
    assert summaries(shelf) == {}
    assert build(shelf, level=DAY) == ["2026-10-01"]


def test_who_comes_second_with_the_same_summary_keeps_the_first(shelf: Shelf) -> None:
    add(shelf, at(2026, 10, 1), "planted beans")
    (due,) = shelf.events.review(DAY, FAR, 10).due
    first = shelf.events.keep(due, "one", "client:one")
    assert shelf.events.keep(due, "other", "client:other") == first


def test_no_more_are_due_at_once_than_asked_for(shelf: Shelf) -> None:
    for day in range(1, 6):
        add(shelf, at(2026, 9, day), f"on day {day}")
    review = shelf.events.review(DAY, FAR, 2)
    assert [due.bucket.label for due in review.due] == ["2026-09-01", "2026-09-02"]
    assert (review.left, review.unchanged) == (3, 0)


def test_the_parts_of_a_day_say_when_and_in_short_what(shelf: Shelf) -> None:
    add(shelf, at(2026, 10, 1, 9, 30), "He planted beans.", title="Garden")
    add(shelf, at(2026, 10, 1, 10), "long " * 2000, summary="In short")
    add(shelf, at(2026, 10, 1, 11), "Beans planted.", title="Beans")
    (due,) = shelf.events.review(DAY, FAR, 10).due
    assert [(part.label, part.text) for part in due.parts] == [
        ("09:30", "Garden: He planted beans."),
        ("10:00", "In short"),
        ("11:00", "Beans planted."),
    ]


BUILDER = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
spec = spec_from_file_location("other_process", sys.argv[1])
world = module_from_spec(spec)
spec.loader.exec_module(world)
library = world.Library(Path(sys.argv[2]), world.HashEmbedder())
events = library.shelf(world.ANN).events
print("ready", flush=True)
sys.stdin.readline()
for level in (1, 2, 3):
    for due in events.review(level, 4e9, 1000).due:
        events.keep(due, events.extract(due, 500), sys.argv[3])
library.close()
"""


def test_two_processes_that_build_at_once_end_with_one_summary_a_bucket(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    for day in range(1, 31):
        add(shelf, at(2026, 9, day), f"on day {day}")
    command = [sys.executable, "-c", BUILDER, str(world.__file__), str(library.directory)]
    builders = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("one", "other")
    ]
    for builder in builders:
        assert builder.stdout is not None
        assert builder.stdout.readline() == "ready\n"
    for builder in builders:
        assert builder.stdin is not None
        builder.stdin.write("\n")
        builder.stdin.flush()
    for builder in builders:
        builder.communicate()
        assert builder.returncode == 0
    found = shelf.contexts(SearchFilter(levels=(1, 2, 3)), 1000)
    levels = [one.hierarchy_level for one in found]
    assert [levels.count(level) for level in (1, 2, 3)] == [30, 5, 1]
    assert len({one.time_bucket for one in found}) == 36
    assert build(shelf) == []


MOMENTS = st.integers(int(at(2026, 1, 1)), int(at(2026, 3, 31)))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=12, unique=True),
    forgotten=st.lists(st.integers(0, 11), max_size=6),
    until=MOMENTS,
)
def test_the_hierarchy_is_what_its_events_make_it(  # noqa: PLR0913, PLR0917  # three wild things
    library_of: Callable[..., Library],
    world: ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
    moments: list[int],
    forgotten: list[int],
    until: int,
) -> None:
    library = library_of(world.HashEmbedder(), Path(tmp_path_factory.mktemp("data")))
    shelf = library.shelf(ANN)
    ids = {moment: add(shelf, moment, f"event{moment}") for moment in moments}
    build(shelf, until)
    for index in forgotten:
        if index < len(moments):
            shelf.forget([ids.pop(moments[index], "")])
    build(shelf, until)
    assert build(shelf, until) == []
    days = {Bucket.of(DAY, moment) for moment in ids if Bucket.of(DAY, moment).start <= until}
    wanted = set(days)
    for level in (WEEK, MONTH):
        above = {Bucket.of(level, day.start) for day in days}
        wanted |= {bucket for bucket in above if bucket.end <= until + 1}
    found = summaries(shelf)
    assert set(found) == {bucket.label for bucket in wanted}
    for bucket in wanted:
        summary = found[bucket.label]
        own = {moment for moment in ids if bucket.start <= moment < bucket.end}
        own = {moment for moment in own if Bucket.of(DAY, moment) in days}
        assert summary.metadata["events"] == len(own)
        told = text_of(shelf, summary)
        assert {moment for moment in moments if f"event{moment}" in told} == own
        parents = {summary.parent_id} - {""}
        assert parents <= {one.id for one in found.values()}
    library.close()
