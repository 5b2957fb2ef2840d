from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import pytest

from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import (
    ContextType,
    Identity,
    NewContext,
    SearchFilter,
    SearchHit,
    TimeRange,
    Turn,
)
from storage.retrieval.ranking import Around

ANN = Identity(user_id="ann")
BEN = Identity(user_id="ben")
ANY = SearchFilter()

MAY_8, JUNE_9 = 1_683_554_160.0, 1_686_314_160.0  # 2023, in the afternoon
DAY = 86_400.0

HOLIDAY = (
    ("Eve", "Where did you go on holiday in the end?"),
    ("Max", "To Tahoe, with my sister."),
    ("Eve", "Good for you."),
    ("Max", "Did I tell you that my cello is broken?"),
    ("Eve", "No! Who mends it?"),
    ("Max", "A man in Reno."),
)
KITCHEN = (
    ("Eve", "The new stove is here."),
    ("Max", "Who put it in?"),
    ("Eve", "The brother of my neighbour did."),
    ("Max", "That was kind of him."),
)


@pytest.fixture
def library(library_of: Callable[..., Library], minilm: MiniLMEmbedder) -> Library:
    return library_of(minilm)


def conversation(name: str, turns: Sequence[tuple[str, str]], when: float) -> NewContext:
    return NewContext(
        title="",
        turns=tuple(Turn(speaker, text) for speaker, text in turns),
        event_time=when,
        raw_type="chat",
        raw_id=name,
    )


def event(text: str, source: str, when: float, **more: Any) -> NewContext:
    return NewContext(
        context_type=ContextType.EVENT,
        title="",
        text=text,
        event_time=when,
        raw_type="chat",
        raw_id=source,
        **more,
    )


def add_chain(library: Library, who: Identity, source: str, when: float) -> None:
    """A conversation that comes as events, the last turn first."""
    turns = HOLIDAY if source == "holiday" else KITCHEN
    for second, (_, text) in reversed(list(enumerate(turns))):
        library.shelf(who).add(event(text, source, when + second))


def search(
    library: Library, query: str, wanted: SearchFilter = ANY, who: Identity = ANN, **options: Any
) -> list[SearchHit]:
    return list(library.engine.search(who, query, wanted, 20, **options).hits)


def texts(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.chunk.content for hit in hits]


@pytest.fixture(params=["turns", "events"])
def conversations(request: pytest.FixtureRequest, library: Library, world: ModuleType) -> Library:
    """Two conversations, as the import of chats stores them, or each turn as an event."""
    if request.param == "turns":
        library.shelf(ANN).add(conversation("holiday", HOLIDAY, MAY_8))
        library.shelf(ANN).add(conversation("kitchen", KITCHEN, JUNE_9))
    else:
        add_chain(library, ANN, "holiday", MAY_8)
        add_chain(library, ANN, "kitchen", JUNE_9)
    world.drain(library)
    return library


def test_an_answer_is_found_by_the_question_before_it(conversations: Library) -> None:
    question, answer, *_ = texts(search(conversations, "the holiday"))
    assert (question, answer) == (HOLIDAY[0][1], HOLIDAY[1][1])


@pytest.mark.parametrize(("stored_as", "is_found"), [("turns", True), ("events", False)])
def test_without_surroundings_turns_still_mean_what_they_answer(
    stored_as: str, *, is_found: bool, library: Library, world: ModuleType
) -> None:
    if stored_as == "turns":
        library.shelf(ANN).add(conversation("holiday", HOLIDAY, MAY_8))
    else:
        add_chain(library, ANN, "holiday", MAY_8)
    world.drain(library)
    alone = texts(library.engine.search(ANN, "the holiday", ANY, 20, surroundings=False).hits)
    assert alone[0] == HOLIDAY[0][1]
    assert (HOLIDAY[1][1] in alone[:2]) is is_found


def test_a_turn_is_found_by_its_neighbour_before_anything_is_embedded(library: Library) -> None:
    library.shelf(ANN).add(conversation("holiday", HOLIDAY, MAY_8))
    first, *others = search(library, "cello")
    assert first.chunk.content == HOLIDAY[3][1]
    assert set(texts(others)) == {HOLIDAY[2][1], HOLIDAY[4][1]}
    assert all(hit.lexical == 0 and not hit.matched_terms for hit in others)


def test_the_words_of_a_session_lift_its_turns(library: Library) -> None:
    for name, subject in (("car", "car"), ("cello", "cello"), ("coat", "coat")):
        turns = (
            ("Eve", f"My {subject}!"),
            ("Max", "Oh."),
            ("Eve", "Oh?"),
            ("Max", "Who mends it?"),
        )
        library.shelf(ANN).add(conversation(name, turns, MAY_8))
    mends = [hit for hit in search(library, "Who mends the cello") if "mends" in hit.chunk.content]
    assert mends[0].context.raw_id == "cello"
    assert len({hit.lexical for hit in mends}) == 1
    assert mends[0].score > mends[1].score == mends[2].score


def test_a_turn_of_the_date_that_is_asked_for_comes_first(library: Library) -> None:
    for month, when in enumerate((MAY_8, JUNE_9, JUNE_9 + 40 * DAY)):
        turns = (("Eve", "How was it?"), ("Max", f"I swam {month + 1} miles."))
        library.shelf(ANN).add(conversation(f"swim {month}", turns, when))
    for date, miles in (("in May", 1), ("on 9 June 2023", 2), ("2023-07", 3)):
        assert texts(search(library, f"How far did Max swim {date}"))[0] == f"I swam {miles} miles."


def test_what_the_named_speaker_said_comes_first(library: Library) -> None:
    plan = (("Eve", "I want to see Rome."), ("Max", "I want to see Oslo."), ("Eve", "Nice!"))
    library.shelf(ANN).add(conversation("plan", plan, MAY_8))
    for speaker, place in (("Eve", "Rome"), ("Max", "Oslo")):
        asked = texts(search(library, f"What does {speaker} want to see?"))
        assert asked[0] == f"I want to see {place}."


def test_a_day_that_a_turn_names_counts_from_its_session(library: Library) -> None:
    swims = (("Eve", "Swimming today?"), ("Max", "I swam yesterday."), ("Eve", "I swam a mile."))
    library.shelf(ANN).add(conversation("swim", swims, MAY_8))
    found = texts(search(library, "Who swam on 7 May 2023?"))
    assert found[0] == "I swam yesterday."


def test_a_question_for_a_time_finds_the_turn_that_tells_one(library: Library) -> None:
    boat = (("Max", "I sold the boat."), ("Eve", "Oh."), ("Max", "I sold the boat last month."))
    library.shelf(ANN).add(conversation("boat", boat, MAY_8))
    assert texts(search(library, "When was the boat sold?"))[0] == boat[2][1]
    assert texts(search(library, "Was the boat sold?"))[0] == boat[0][1]


def test_days_are_counted_from_an_event_that_is_found(library: Library) -> None:
    for name, when, text in (
        ("trip", JUNE_9, "We leave for the trip to Tahoe today."),
        ("bought", JUNE_9 - 14 * DAY, "I bought a tent and a stove."),
        ("other", JUNE_9 - 60 * DAY, "I bought a tent and a lamp."),
    ):
        library.shelf(ANN).add(conversation(name, [("Max", text), ("Eve", "Well!")], when))
    hits = search(library, "Which tent was bought two weeks before the trip to Tahoe?")
    sessions = [hit.context.raw_id for hit in hits if "tent" in hit.chunk.content]
    assert sessions[0] == "bought"


@pytest.mark.parametrize("quotes", ['"{}"', "\u201e{}\u201c", "「{}」"])
def test_a_quote_is_found_word_for_word(library: Library, world: ModuleType, quotes: str) -> None:
    for name, text in (("a", "Moon, blue moon, moon!"), ("b", "They played The Blue Guitar Moon.")):
        library.shelf(ANN).add(world.new_document(name, text))
    plain, *_ = texts(search(library, "blue guitar moon"))
    quoted, *_ = texts(search(library, f"moon {quotes.format('blue moon')}"))
    assert "Guitar" in plain
    assert quoted == "Moon, blue moon, moon!"


def test_a_hit_tells_what_its_surroundings_did(conversations: Library) -> None:
    for hit in search(conversations, "Who mended the cello in May 2023?"):
        assert hit.surroundings is not None
        assert 0 <= hit.surroundings <= 1
        assert 0 <= hit.score <= 1


def test_blending_keeps_a_score_between_its_parts() -> None:
    around = Around(score=0.8, weight=0.5)
    assert around.blend(0.8) == pytest.approx(0.8)
    assert around.blend(0.2) == pytest.approx((0.2 + 0.5 * 0.8) / 1.5)


def test_what_stands_alone_ranks_as_it_did(library: Library, world: ModuleType) -> None:
    for number, (_, text) in enumerate((*HOLIDAY, *KITCHEN)):
        library.shelf(ANN).add(world.new_document(str(number), text))
    library.shelf(ANN).add(event("The cello is mended.", "", MAY_8))
    world.drain(library)
    for query in ("the holiday", "Who mended the cello in 2026?"):
        plain = library.engine.search(ANN, query, ANY, 20, surroundings=False).hits
        found = [hit for hit in search(library, query) if hit.context.raw_id]
        assert [hit.score for hit in found] == [hit.score for hit in plain if hit.context.raw_id]
        assert {hit.surroundings for hit in found} == {None}


def test_no_chunk_of_a_document_joins(library: Library, world: ModuleType) -> None:
    sections = (
        f"# {name}\n\n{text} " + "Nothing more is said of this. " * 20
        for name, text in (
            ("Stove", "Clean it with soda."),
            ("Cello", "Tune it daily."),
            ("Car", "Wash it."),
        )
    )
    library.shelf(ANN).add(
        NewContext(title="House", text="\n\n".join(sections), markdown=True, raw_id="house")
    )
    (hit,) = search(library, "cello")
    assert hit.context.chunk_count == 3
    assert hit.surroundings == 1


@pytest.mark.parametrize("embedded", [False, True])
def test_nothing_crosses_users(library: Library, world: ModuleType, *, embedded: bool) -> None:
    for who in (ANN, BEN):
        add_chain(library, who, "holiday", MAY_8)
        library.shelf(who).add(conversation("kitchen", KITCHEN, MAY_8))
    alone = texts(search(library, "the holiday"))
    library.shelf(BEN).add(event("The holiday was the best of all holidays.", "holiday", MAY_8 + 1))
    if embedded:
        world.drain(library)
    for query in ("the holiday", "Who put in the stove?"):
        found = search(library, query)
        assert found
        assert {hit.context.identity.user_id for hit in found} == {"ann"}
    if not embedded:
        assert texts(search(library, "the holiday")) == alone


def test_a_chain_is_one_devices_and_one_agents(library: Library) -> None:
    phone, laptop = (Identity(user_id="ann", device_id=name) for name in ("phone", "laptop"))
    library.shelf(phone).add(event("Where is the cello?", "chat", MAY_8))
    library.shelf(laptop).add(event("In the attic.", "chat", MAY_8 + 1))
    assert texts(search(library, "cello")) == ["Where is the cello?"]
    library.shelf(phone).add(event("In the cellar.", "chat", MAY_8 + 2))
    assert texts(search(library, "cello")) == ["Where is the cello?", "In the cellar."]


def test_a_filter_holds_for_neighbours_too(library: Library) -> None:
    add_chain(library, ANN, "holiday", MAY_8)
    until_cello = SearchFilter(time_range=TimeRange(end=MAY_8 + 3))
    assert HOLIDAY[4][1] in texts(search(library, "cello"))
    assert texts(search(library, "cello", until_cello)) == [HOLIDAY[3][1], HOLIDAY[2][1]]
    library.shelf(ANN).add(event("The cello of my sister.", "b", JUNE_9, entities=("Mia",)))
    library.shelf(ANN).add(event("It has four strings.", "b", JUNE_9 + 1))
    assert texts(search(library, "cello", SearchFilter(entities=("mia",)))) == [
        "The cello of my sister."
    ]


def test_events_of_other_days_are_another_session(library: Library) -> None:
    library.shelf(ANN).add(event("Where is the cello?", "log", MAY_8))
    library.shelf(ANN).add(event("In the attic.", "log", MAY_8 + 2 * DAY))
    assert texts(search(library, "cello")) == ["Where is the cello?"]


def test_the_parts_of_a_long_turn_stand_beside_each_other(library: Library) -> None:
    long = "The cello wants care. " + "Wipe it after you have played. " * 100
    turns = (("Eve", "What do I do with it?"), ("Max", long), ("Eve", "I see."))
    library.shelf(ANN).add(conversation("care", turns, MAY_8))
    add_chain(library, ANN, "kitchen", MAY_8)
    hits = search(library, "cello")
    assert [hit.chunk.position for hit in hits] == [1, 0, 2] or [
        hit.chunk.position for hit in hits
    ] == [1, 2, 0]
    assert hits[0].context.chunk_count > 4


def test_meaning_only_leaves_the_words_of_sessions_out(conversations: Library) -> None:
    words = {hit.chunk.content: hit.surroundings for hit in search(conversations, "cello")}
    meaning = search(conversations, "cello", alpha=1.0)
    assert meaning
    assert any(hit.surroundings != words.get(hit.chunk.content) for hit in meaning)


def test_chunks_of_a_context_follow_each_other_when_others_write(
    library: Library, world: ModuleType
) -> None:
    for name in ("one", "two", "one"):
        library.shelf(ANN).add(conversation(name, (*HOLIDAY, ("Eve", name)), MAY_8))
    with library.database.read() as connection:
        rows = connection.execute(
            "SELECT max(seq) - min(seq), max(position) FROM chunks GROUP BY context_seq"
        ).fetchall()
    assert [tuple(row) for row in rows] == [(6, 6), (6, 6)]
