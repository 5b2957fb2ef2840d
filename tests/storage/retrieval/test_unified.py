"""One question over memory and knowledge, and that no answer of the cache is wrong or stale."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, NewEntry, SearchFilter, TimeRange
from storage.people.models import NewEntity
from storage.retrieval.ranking import DIVERSITY, UnifiedHit
from storage.retrieval.routing import Scope, Source, UnifiedQuery
from storage.retrieval.unified import CACHED_SECONDS, MOST_CACHED, AnswerCache, UnifiedResult

ANN = Identity(user_id="ann")
NOTES = Source(name="notes", under="n")


def keep(shelf: Shelf, text: str, **given: Any) -> str:
    own: dict[str, Any] = {"title": "", "text": text, "context_type": ContextType.KNOWLEDGE}
    return shelf.add(NewContext(**{**own, **given})).context.id


def document(shelf: Shelf, raw_id: str, text: str, **given: Any) -> str:
    return keep(
        shelf,
        text,
        context_type=ContextType.DOCUMENT,
        title=raw_id,
        raw_type="text",
        raw_id=raw_id,
        **given,
    )


def entry(said: str, session_id: str = "s", **given: Any) -> NewEntry:
    own: dict[str, Any] = {"kind": "call", "time": time.time(), "action": "write_file"}
    return NewEntry(session_id=session_id, said=said, **{**own, **given})


def ask(shelf: Shelf, query: str, **given: Any) -> UnifiedResult:
    return shelf.ask(UnifiedQuery(text=query, session_id="s", **{"top_k": 5, **given}))


def told(result: UnifiedResult) -> list[tuple[str, int, str]]:
    return [(each.origin, each.layer, text(each)) for each in result.hits]


def text(hit: UnifiedHit) -> str:
    if hit.passage is not None:
        return hit.passage.chunk.content
    assert hit.entry is not None
    return hit.entry.said


@pytest.fixture
def library(library_of: Callable[..., Library], minilm: MiniLMEmbedder) -> Library:
    """One with the bundled embedder."""
    return library_of(minilm)


@pytest.fixture
def shelf(library: Library) -> Shelf:
    shelf = library.shelf(ANN)
    document(shelf, "notes", "The kettle whistles in the kitchen.")
    keep(shelf, "The kettle was bought in Turku.")
    keep(shelf, "The kettle leaks at the spout.", memory_layer=2)
    keep(shelf, "We talked about a kettle and its warranty.", memory_layer=3)
    keep(shelf, "Kettle lime goes with vinegar.", context_type=ContextType.EVENT)
    library.entries.record(ANN, entry("Wrote a list of kettle parts"))
    library.entries.record(ANN, entry("Wrote of a kettle elsewhere", "other"))
    while library.indexer.step():
        pass
    return shelf


KNOWN = {
    ("documents", 0, "The kettle whistles in the kitchen."),
    ("knowledge", 0, "The kettle was bought in Turku."),
    ("events", 0, "Kettle lime goes with vinegar."),
}
REMEMBERED = {
    ("memory", 2, "The kettle leaks at the spout."),
    ("memory", 3, "We talked about a kettle and its warranty."),
}
RECENT = {("memory", 1, "Wrote a list of kettle parts")}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, KNOWN | REMEMBERED),
        ({"scope": Scope.ALL}, KNOWN | REMEMBERED),
        ({"scope": Scope.MEMORY}, REMEMBERED | RECENT),
        ({"scope": Scope.KNOWLEDGE}, KNOWN),
        ({"layers": (1,)}, RECENT),
        ({"layers": (2,)}, {("memory", 2, "The kettle leaks at the spout.")}),
        ({"source": NOTES}, {("notes", 0, "The kettle whistles in the kitchen.")}),
        ({"criteria": SearchFilter(time_range=TimeRange(end=1))}, set()),
    ],
)
def test_a_question_finds_what_its_scope_has(
    shelf: Shelf, given: dict[str, Any], found: set[tuple[str, int, str]]
) -> None:
    answer = ask(shelf, "kettle", top_k=20, **given)
    assert set(told(answer)) == found
    scores = [each.score for each in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= each <= 1 for each in scores)


def test_a_hit_tells_the_source_of_the_settings_that_it_is_in(shelf: Shelf) -> None:
    origins = {each.origin for each in ask(shelf, "kettle", top_k=20, sources=(NOTES,)).hits}
    assert origins == {"notes", "knowledge", "events", "memory"}


def test_sure_words_narrow_and_what_finds_nothing_there_is_widened(shelf: Shelf) -> None:
    answer = ask(shelf, "Did I tell you about the warranty?")
    assert answer.scope is Scope.MEMORY
    assert told(answer)[0] == ("memory", 3, "We talked about a kettle and its warranty.")
    answer = ask(shelf, "Did I tell you about Turku?")
    assert answer.scope is Scope.ALL
    assert answer.why == "'Did I tell you' asks for memory, which has nothing"
    assert told(answer)[0] == ("knowledge", 0, "The kettle was bought in Turku.")
    assert ask(shelf, "Turku", scope=Scope.MEMORY).hits == ()


def test_an_entry_that_tells_of_a_found_passage_is_no_finding_of_its_own(
    library: Library, shelf: Shelf
) -> None:
    added = document(shelf, "boat", "The dinghy floats.")
    library.entries.record(ANN, entry("Stored: the dinghy floats", context_ids=(added,)))
    assert told(ask(shelf, "dinghy")) == [("documents", 0, "The dinghy floats.")]
    only_recent = ask(shelf, "dinghy", scope=Scope.MEMORY)
    assert told(only_recent) == [("memory", 1, "Stored: the dinghy floats")]


def test_an_entry_counts_as_a_passage_of_the_same_words(library: Library) -> None:
    shelf = library.shelf(ANN)
    keep(shelf, "marmalade toast breakfast " + "filler " * 40, memory_layer=2)
    library.entries.record(ANN, entry("marmalade toast breakfast " + "padding " * 40))
    library.entries.record(ANN, entry("marmalade " + "others " * 40))
    found = ask(shelf, "marmalade toast breakfast", scope=Scope.MEMORY).hits
    assert [each.layer for each in found] == [2, 1, 1]
    _, same, less = (each.score for each in found)
    assert same == pytest.approx(1 - DIVERSITY / 3)  # the second of one origin
    assert less < same - 0.2


def test_what_was_just_called_is_found_only_where_nothing_else_is(
    library: Library, shelf: Shelf
) -> None:
    library.entries.record(ANN, entry("Read of a whisk and of a kettle"))
    assert all(each.layer != 1 for each in ask(shelf, "How does the kettle whistle?").hits)
    assert told(ask(shelf, "whisk")) == [("memory", 1, "Read of a whisk and of a kettle")]


@pytest.mark.parametrize(
    "question",
    [
        "What did you just run?",
        "Was hast du gerade ausgef\u00fchrt?",
        "\u4f60\u521a\u624d\u8fd0\u884c\u4e86\u4ec0\u4e48",
    ],
)
def test_what_was_last_needs_no_words_in_common(
    library: Library, shelf: Shelf, question: str
) -> None:
    library.entries.record(ANN, entry("Painted the fence"))
    library.entries.record(ANN, entry("No such gate", outcome="not_found"))
    assert told(ask(shelf, question)) == [
        ("memory", 1, "Painted the fence"),
        ("memory", 1, "Wrote a list of kettle parts"),
    ]


@pytest.mark.parametrize(
    "question",
    [
        "What happened in the last session?",
        "What did we do last time?",
        "Was haben wir in der letzten Sitzung gemacht?",
        "上次会话做了什么",
    ],
)
def test_what_happened_in_the_last_session_is_told_by_its_summary_and_its_entries(
    library: Library, shelf: Shelf, question: str
) -> None:
    asked = {"action": "query", "arguments": {"query": "fence"}, "is_recall": True}
    library.entries.record(ANN, entry("", "yesterday", time=time.time() - 90_000, **asked))
    painted = entry("Painted the fence", "yesterday", time=time.time() - 90_000)
    long_ago = entry("Dug the pond", "long ago", time=time.time() - 900_000)
    for each in (painted, long_ago):
        library.entries.record(ANN, each)
    last = ("memory", 1, "Wrote of a kettle elsewhere")
    assert told(ask(shelf, question)) == [last]
    for session in ("yesterday", "other"):
        summary = f"The session {session}."
        keep(shelf, summary, memory_layer=3, raw_type="session", raw_id=session)
    assert told(ask(shelf, question)) == [("memory", 3, "The session other."), last]
    other = shelf.ask(UnifiedQuery(text=question, top_k=5, session_id="other"))
    assert told(other) == [("memory", 1, "Wrote a list of kettle parts")]


def test_without_an_earlier_session_no_summary_tells_what_happened_in_it(library: Library) -> None:
    shelf = library.shelf(Identity(user_id="new"))
    keep(shelf, "The boat was painted in 2019.", memory_layer=3)
    answer = ask(shelf, "What happened in the last session?")
    assert "The boat was painted in 2019." not in [text(each) for each in answer.hits]


@pytest.mark.parametrize(
    "question",
    ["Which call failed?", "Was ist schiefgegangen?", "\u54ea\u4e2a\u547d\u4ee4\u5931\u8d25\u4e86"],
)
def test_failed_calls_are_found_where_failures_are_asked_for(
    library: Library, shelf: Shelf, question: str
) -> None:
    library.entries.record(ANN, entry("No such kettle", outcome="not_found"))
    assert told(ask(shelf, question)) == [("memory", 1, "No such kettle")]
    worked = ("memory", 1, "Wrote a list of kettle parts")
    assert told(ask(shelf, "kettle", layers=(1,))) == [worked]
    assert told(ask(shelf, "failed kettle", layers=(1,))) == [("memory", 1, "No such kettle")]


def test_a_follow_up_is_asked_with_the_query_before_it(library: Library, shelf: Shelf) -> None:
    def asked_before(query: str, seconds_ago: float, session_id: str = "s") -> None:
        given = {"action": "query", "arguments": {"query": query}, "is_recall": True}
        moment = time.time() - seconds_ago
        library.entries.record(ANN, entry("", session_id, time=moment, **given))

    asked_before("Where was the kettle bought?", 700)
    asked_before("Where was the boat bought?", 1, "other")
    assert ask(shelf, "and its spout?").query == "and its spout?"
    asked_before("Where was the kettle bought?", 60)
    answer = ask(shelf, "and its spout?")
    assert answer.query == "Where was the kettle bought and its spout?"
    assert ("memory", 2, "The kettle leaks at the spout.") in told(answer)
    assert ask(shelf, "spout of the kettle").query == "spout of the kettle"


def test_a_query_is_completed_where_nothing_answers_it_alone(
    library: Library, shelf: Shelf
) -> None:
    document(shelf, "Anniversary", "Moro catered the anniversary. All forty praised the lamb.")
    document(shelf, "Wedding", "We bought food for the guests of the wedding.")
    document(shelf, "Stove", "The old stove burns coal and wood.")
    while library.indexer.step():
        pass
    asked = {"query": "Who catered the anniversary?"}
    library.entries.record(ANN, entry("", action="query", arguments=asked, is_recall=True))
    answer = ask(shelf, "which meat did people like most?")
    assert answer.query == "Who catered the anniversary which meat did people like most?"
    assert "lamb" in told(answer)[0][2]
    assert ask(shelf, "can the old stove burn coal?").query == "can the old stove burn coal?"
    assert ask(shelf, "what did people buy?", layers=(1,)).query == "what did people buy?"


@pytest.mark.parametrize(
    "question",
    [
        "Does the user like tabs?",
        "tabs or spaces?",
        "Which tabs does the user like?",
        "用户喜欢tabs吗",
    ],
)
def test_what_answers_a_query_alone_stays_first_whatever_was_asked_before(
    library: Library, shelf: Shelf, question: str
) -> None:
    keep(shelf, "The user likes tabs more than spaces: 用户喜欢tabs。", memory_layer=2)
    keep(shelf, "GraphQL serves the admin console, REST everything else.", memory_layer=2)
    while library.indexer.step():
        pass
    alone = ask(shelf, question).hits[0]
    asked = {"query": "GraphQL or REST?"}
    library.entries.record(ANN, entry("", action="query", arguments=asked, is_recall=True))
    again = ask(shelf, question).hits[0]
    assert text(again) == text(alone)
    assert again.score >= alone.score


def test_an_answer_is_given_again_until_something_changes(library: Library, shelf: Shelf) -> None:
    first = ask(shelf, "kettle spout")
    assert (first.cached, ask(shelf, "kettle spout").cached) == ("", "kettle spout")
    changes: list[Callable[[], object]] = [
        lambda: keep(shelf, "Another spout of a kettle."),
        lambda: library.entries.record(ANN, entry("Drew a spout")),
        lambda: library.entries.forget(ANN, [1]),
        lambda: shelf.people.save_entity(NewEntity(name="Ada")),
        lambda: shelf.forget([_first_id(first)]),
        library.indexer.rebuild_words,
    ]
    for change in changes:
        change()
        assert ask(shelf, "kettle spout").cached == ""
        while library.indexer.step():
            pass
        ask(shelf, "kettle spout")
        assert ask(shelf, "kettle spout").cached == "kettle spout"


def _first_id(result: UnifiedResult) -> str:
    hit = result.hits[0].passage
    assert hit is not None
    return hit.context.id


def test_recalls_uses_and_others_do_not_make_an_answer_old(library: Library, shelf: Shelf) -> None:
    ask(shelf, "kettle spout")
    library.entries.record(ANN, entry("looked", is_recall=True))
    library.entries.record(ANN, entry("kettle spout", "other"))
    keep(library.shelf(Identity(user_id="bob")), "Bob's kettle.")
    with library.database.write() as connection:
        connection.execute("UPDATE memories SET uses = uses + 1, last_used = 1")
    while library.indexer.step():
        pass
    assert ask(shelf, "kettle spout").cached == "kettle spout"


def test_an_incomplete_answer_is_never_given_again(library: Library) -> None:
    shelf = library.shelf(ANN)
    document(shelf, "a", "The kettle leaks.")
    assert not ask(shelf, "kettle").status.complete
    assert ask(shelf, "kettle").cached == ""


def test_another_name_that_is_stored_is_another_question(library: Library) -> None:
    shelf = library.shelf(ANN)
    keep(shelf, "Anna has a phone: its number is 555, at home in Turku.")
    keep(shelf, "Bob has a phone: its number is 777, at home in Oslo.")
    while library.indexer.step():
        pass
    ask(shelf, "Anna phone number home please")
    answer = ask(shelf, "Bob phone number home please")
    assert answer.cached == ""
    assert "Bob" in text(answer.hits[0])
    again = ask(shelf, "The Anna phone number, home please?")
    assert again.cached == "Anna phone number home please"


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("where does Tom Smith keep the automobile", "where does Tom Smith keep the kitten"),
        ("old kitchen garage customs", "old kitchen garage customers"),
    ],
)
def test_a_word_that_nothing_holds_makes_another_question_where_meaning_counts(
    library: Library, first: str, other: str
) -> None:
    shelf = library.shelf(ANN)
    keep(shelf, "Tom Smith keeps his car in the old garage.")
    keep(shelf, "Tom Smith keeps his cat in the warm kitchen.")
    while library.indexer.step():
        pass
    ask(shelf, first)
    assert ask(shelf, other).cached == ""


WORDS = ["kettle", "spout", "boat", "Ada", "Turku", "zork", "plugh", "not", "7", "水壶", "漏水"]
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join) | st.sampled_from(
    [
        *("kettle spout boat", "the kettle spout boat", "kettle spout boat zork"),
        *("kettle spout boat plugh", "kettle spout boat zork plugh", "kettle not spout boat"),
        *("kettle 7 spout boat", "kettle 8 spout boat", "boat spout kettle"),
        *("did I tell you about the kettle spout", "and why?", "水壶漏水"),
    ]
)
SESSIONS = st.sampled_from(["s", "t", ""])
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "identity": st.sampled_from([ANN, Identity("ann", "phone"), Identity(user_id="bob")]),
    "text": QUERIES,
    "top_k": st.sampled_from([1, 2, 5, 20]),
    "scope": st.sampled_from(Scope),
    "intent": st.sampled_from(["", "recall"]),
    "source": st.sampled_from([None, NOTES]),
    "sources": st.sampled_from([(), (NOTES,)]),
    "layers": st.sampled_from([(), (1,), (2, 3)]),
    "criteria": st.sampled_from(
        [
            SearchFilter(),
            SearchFilter(entities=("Ada",)),
            SearchFilter(labels=(("year", ("2026",)),)),
            SearchFilter(time_range=TimeRange(start=0)),
            SearchFilter(context_types=(ContextType.DOCUMENT,)),
        ]
    ),
    "session_id": SESSIONS,
}
PLAIN = {"identity": ANN, "text": "kettle spout boat", "top_k": 20, "session_id": "s"}
QUESTIONS = (
    QUERIES.map(lambda query: {**PLAIN, "text": query})
    | st.sampled_from(sorted(ARGUMENTS)).flatmap(
        lambda name: ARGUMENTS[name].map(lambda value: {**PLAIN, name: value})
    )
    | st.fixed_dictionaries(ARGUMENTS)
)
CHANGES = st.tuples(
    st.sampled_from(["add", "remember", "forget", "record", "unrecord", "entity", "reset"]),
    st.sampled_from([ANN, ANN, ANN, Identity("ann", "phone"), Identity(user_id="bob")]),
    QUERIES | st.sampled_from(["zork", "plugh zork", "boat kettle"]),
    st.sampled_from(["s", "s", "s", "t", ""]),
    st.integers(0, 9),
)


@pytest.fixture(scope="session")
def stocked(world: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with something for each argument to find."""
    folder = tmp_path_factory.mktemp("stocked")
    with closing(Library(folder, world.HashEmbedder())) as library:
        shelf = library.shelf(ANN)
        document(shelf, "n1", "kettle boat", entities=("Ada",), metadata={"year": 2026})
        document(shelf, "m1", "kettle spout Turku")
        keep(shelf, "spout kettle whistle", memory_layer=2)
        keep(shelf, "boat spout", memory_layer=4)
        document(library.shelf(Identity("ann", "phone")), "n2", "kettle phone")
        document(library.shelf(Identity("bob")), "n1", "boat of bob")
        library.entries.record(ANN, entry("painted the fence"))
        library.entries.record(ANN, entry("sold the boat", "t"))
        while library.indexer.step():
            pass
    return folder


@pytest.mark.slow
@settings(max_examples=25)
@given(
    alpha=st.sampled_from([0.0, 0.0, 0.5]),
    questions=st.lists(QUESTIONS, min_size=1, max_size=4),
    changes=st.lists(CHANGES, min_size=1, max_size=4),
)
def test_no_answer_of_the_cache_is_wrong_or_stale(
    world: ModuleType,
    stocked: Path,
    alpha: float,
    questions: list[dict[str, Any]],
    changes: list[tuple[str, Identity, str, str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(stocked, name, dirs_exist_ok=True))
        made = [Library(folder, world.HashEmbedder(), alpha=alpha) for _ in range(2)]
        with closing(made[0]), closing(made[1]):
            for turn, what in enumerate([None, *changes]):
                if what is not None:
                    change(made[turn % 2], *what)
                for question in (PLAIN, *questions):
                    check(made[0], world, alpha, **question)


def check(
    library: Library, world: ModuleType, alpha: float, identity: Identity, **question: Any
) -> None:
    query = UnifiedQuery(**question)
    answer = library.shelf(identity).ask(query)
    with closing(Library(library.directory, world.HashEmbedder(), alpha=alpha)) as fresh:
        anew = fresh.shelf(identity).ask(query)
    if answer.cached:
        assert _without_the(answer.cached) == _without_the(answer.query)
    if answer.cached in {"", answer.query}:  # how likely an answer is differs with every word
        assert seen(answer) == seen(anew)
    assert replace(answer, hits=(), nearest=(), cached="") == replace(anew, hits=(), nearest=())


def _without_the(query: str) -> str:
    return query.removeprefix("the ")


def seen(result: UnifiedResult) -> list[tuple[Any, ...]]:
    return [
        (each.origin, each.layer, round(each.score, 9), each.entry)
        + ((each.passage.chunk, each.passage.context) if each.passage else ())
        for each in result.hits
    ]


def change(  # noqa: PLR0913, PLR0917  # what is drawn for each kind of change
    library: Library, what: str, identity: Identity, words: str, session_id: str, number: int
) -> None:
    """Changes something, and mostly sees it embedded, as only then an answer is kept."""
    shelf = library.shelf(identity)
    match what:
        case "add":
            about = {"entities": ("Ada",), "metadata": {"year": 2026}} if number % 2 else {}
            document(shelf, f"n{number}", words, **about)
        case "remember":
            keep(shelf, words, memory_layer=2 + number % 3)
        case "forget":
            shelf.forget([each.id for each in shelf.contexts(SearchFilter(), 2)])
        case "record":
            asked = {"action": "query", "arguments": {"query": words}, "is_recall": True}
            library.entries.record(
                identity, entry(words, session_id, **(asked if number < 2 else {}))
            )
        case "unrecord":
            library.entries.forget(identity, [number])
        case "entity":
            shelf.people.save_entity(NewEntity(name="Ada", aliases=(words[:40],)))
        case "reset":
            library.indexer.rebuild_words()
    while number and library.indexer.step():
        pass


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def known(cache: AnswerCache[str], query: str, key: str = "key") -> str:
    found = cache.find(key, query)
    return "" if found is None else found[1]


def test_an_answer_is_found_under_its_key_until_it_is_old() -> None:
    clock = Clock()
    cache: AnswerCache[str] = AnswerCache(clock)
    cache.add("key", "heron", "heron")
    clock.now = CACHED_SECONDS
    assert (known(cache, "heron"), known(cache, "heron", "other")) == ("heron", "")
    cache.add("key", "crane", "crane")
    clock.now += 0.1
    assert (known(cache, "heron"), known(cache, "crane")) == ("", "crane")


def test_of_too_many_answers_the_oldest_go() -> None:
    cache: AnswerCache[str] = AnswerCache()
    for number in range(MOST_CACHED + 1):
        cache.add(number, "heron", "heron")
    cache.add(1, "heron", "heron")
    cache.add("more", "heron", "heron")
    found = [number for number in range(4) if cache.find(number, "heron")]
    assert found == [1, 3]


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("price of the blue kettle", "the price of a blue kettle"),
        ("Blue kettle: price", "blue kettle price"),
        ("蓝色水壶的价格", "蓝色水壶的价格。"),
        ("Is the kettle blue?", "the kettle is blue"),
    ],
)
def test_what_differs_in_nothing_that_finds_is_one_question(query: str, other: str) -> None:
    cache: AnswerCache[str] = AnswerCache()
    cache.add("key", query, query)
    assert known(cache, other) == query


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("Anna's phone", "Bob's phone"),
        ("the blue kettle whistles loudly", "the blue kettle whistles"),
        ("release 3.5", "release 3 5"),
        ("trains from Rome to Paris by night", "trains from Paris to Rome by night"),
        ("kettles that are not blue or round", "kettles that are blue or round"),
        ("kettles without blue round lids", "kettles with blue round lids"),
        ("kettle model 7 blue round lid", "kettle model 8 blue round lid"),
        ("my blue kettle price", "her blue kettle price"),
        ("what is the blue kettle price", "where is the blue kettle price"),
        ("blue kettle price before Friday", "blue kettle price after Friday"),
        ("blue kettles that don't leak water", "blue kettles that leak water"),
        ("蓝色水壶会漏水", "蓝色水壶不会漏水"),
        ("sales of tea in Turku in May", "sales of tea in Turku in June"),
        ("Verkauf ohne Zucker und Milch", "Verkauf mit Zucker und Milch"),
    ],
)
def test_what_means_something_else_is_another_question(query: str, other: str) -> None:
    cache: AnswerCache[str] = AnswerCache()
    cache.add("key", query, query)
    assert known(cache, other) == ""
