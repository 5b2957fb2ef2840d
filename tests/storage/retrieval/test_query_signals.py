"""What a query says of where its answer stands."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.retrieval.dates import NamedDate, Span
from storage.retrieval.query_signals import (
    LONGEST,
    completed,
    cues_of,
    is_follow_up,
    named_speakers,
    names_in,
    speaker_of,
    tells_time,
)

MAY_8_2023 = 1_683_554_160.0


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('Who sang "Blue  Moon"?', ["blue moon"]),
        ("Who sang \u201cIt\u2019s now\u201d?", ["it's now"]),
        ("Wer sang \u201eBlauer Mond\u201c?", ["blauer mond"]),
        ("谁唱了「月亮」和《太阳》", ["月亮", "太阳"]),
        ('5" and 6 feet', []),
        ("Max's and Eve's", []),
    ],
)
def test_what_stands_in_quotes_is_a_phrase(query: str, phrases: list[str]) -> None:
    assert cues_of(query, 0.0).phrases == phrases


def test_a_day_that_is_named_is_what_others_are_counted_from() -> None:
    asked = cues_of("What did she do the week before August 3, 2023?", MAY_8_2023)
    assert asked.dates == (NamedDate(2023, 8, 3), Span(date(2023, 7, 27), date(2023, 8, 2)))
    assert not asked.distances
    now = cues_of("What did she do last Friday?", MAY_8_2023)
    assert now.dates == (Span(date(2023, 5, 5), date(2023, 5, 5)),)


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("When did she move?", True),
        ("In which year was that?", True),
        ("Wann ist er umgezogen?", True),
        ("她什么时候搬家", True),
        ("What did she do when it rained?", False),
        ("Which weekend bag is his?", False),
    ],
)
def test_some_questions_ask_for_a_time(query: str, asks: bool) -> None:
    assert cues_of(query, 0.0).asks_when is asks


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("When did I meet Caroline's boss at IKEA?", {"Caroline's", "IKEA"}),
        ("Thanks. Where is Berlin? Paris too", {"Berlin"}),  # a sentence begins with "Paris"
        ("What was said on Friday in May?", set()),
        ("WHERE IS BERLIN", set()),
        ("who is caroline", set()),
        ("Wo liegt der Schlüssel?", {"Schlüssel"}),
        ("GRP-205 status of E-3419", {"GRP-205", "E-3419", "E"}),
        ("北京在哪里", set()),
        ("TUMAS的主席叫什么名字", {"TUMAS"}),
    ],
)
def test_names_have_a_capital_where_no_sentence_begins(query: str, names: set[str]) -> None:
    assert names_in(query) == names


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("I moved last Summer.", True),
        ("Ich bin gestern umgezogen.", True),
        ("我上个月搬家了", True),
        ("I like to move it.", False),
    ],
)
def test_some_texts_tell_a_time(text: str, tells: bool) -> None:
    assert tells_time(text) is tells


def test_a_heading_begins_with_the_speaker() -> None:
    assert speaker_of("Ann Lee, 8 May 2023") == "Ann Lee"
    assert speaker_of("User, 2023-05-08T10:00:00Z") == "User"
    assert not speaker_of("How we moved the whole shed last year")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What did Ann buy?", {"Ann Lee"}),
        ("what did ann's brother say to jürgen", {"Ann Lee", "Jürgen"}),
        ("what will happen", set()),
        ("What does Will plan?", {"Will"}),
        ("王芳说了什么", {"王芳"}),
        ("Which annual fee?", set()),
    ],
)
def test_a_name_is_known_by_a_word_of_it(query: str, named: set[str]) -> None:
    assert named_speakers(query, ["Ann Lee", "Jürgen", "Will", "王芳", ""]) == named


LEANING = [
    "and IT?",
    "And in 2025?",
    "WHERE IS IT?",
    "and its limits?",
    "what about it?",
    "What is its timeout?",
    "why?",
    "and Bob's?",
    "How do I sharpen it?",
    "who is she married to?",
    "Und seine Grenzen?",
    "Und wie viel kostet es?",
    "那它呢",
    "价格呢",
    "它的价格是多少",
    "他什么时候出生",
]
ALONE = [
    "What is 42?",
    "What is IT?",
    "IT budget",
    "Who is Will?",
    "Who am I?",
    "Wer bin ich?",
    "",
    "?!",
    "42",
    "heron",
    "ChromaDB",
    "How does the rate limit work?",
    "What did Anna say about her phone?",
    "Does Postgres support it on Windows?",
    "its timeout, the rate limit and the price of the search API",
    "Wie viel kostet das Abo?",
    "向量索引的限制是什么",
    "什么是机器学习",
]


def rewrite(query: str, earlier: Sequence[str]) -> str:
    """The query as it is asked where its form alone decides."""
    return completed(query, earlier) if is_follow_up(query) else query


@pytest.mark.parametrize("query", LEANING)
def test_what_says_little_and_points_back_is_asked_with_the_query_before(query: str) -> None:
    assert is_follow_up(query)
    asked = rewrite(query, ["the price of tea", "What is the rate limit of the search API?"])
    assert asked == f"What is the rate limit of the search API {query}"


@pytest.mark.parametrize("query", ALONE)
def test_what_can_stand_alone_is_left_as_it_is(query: str) -> None:
    assert not is_follow_up(query)
    assert rewrite(query, ["What is the rate limit of the search API?"]) == query


def _told_wrong(name: str) -> tuple[int, list[str], list[str]]:
    """How many pairs a file has, and which of those that lean and that stand are told wrong."""
    path = Path(__file__).parent / "data" / f"{name}.jsonl"
    pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wrong = [
        pair
        for pair in pairs
        if (rewrite(pair["query"], [pair["earlier"]]) != pair["query"]) is not pair["leans"]
    ]
    lean, stand = ([p["query"] for p in wrong if p["leans"] is leans] for leans in (True, False))
    return len(pairs), lean, stand


@pytest.mark.parametrize(
    ("name", "pairs", "most_wrong"),
    [
        ("follow_ups", 60, 3),
        ("follow_ups_held_out", 60, 3),
        ("follow_ups_fresh", 60, 3),
        ("follow_ups_short", 240, 4),
        ("follow_ups_varied", 150, 3),
        ("follow_ups_unseen", 360, 16),
        ("follow_ups_asked", 120, 12),
        ("follow_ups_later", 60, 6),
    ],
)
def test_of_pairs_in_three_languages_hardly_any_is_taken_for_the_other(
    name: str, pairs: int, most_wrong: int
) -> None:
    count, lean, stand = _told_wrong(name)
    assert count == pairs
    assert len(lean) + len(stand) <= most_wrong, (lean, stand)


def test_a_chain_of_follow_ups_leans_on_the_query_that_began_it_and_on_the_last() -> None:
    earlier = ["the price of tea", "rate limit of the search API", "why?", "and its timeout?"]
    asked = rewrite("and when?", earlier)
    assert asked == "rate limit of the search API and its timeout and when?"


def test_nothing_leans_on_what_says_nothing() -> None:
    assert rewrite("and when?", ["rate limit of the search API", "???"]) == (
        "rate limit of the search API and when?"
    )


def test_of_a_person_only_the_name_is_taken_over() -> None:
    earlier = ["When did Ada Lovelace meet Babbage in London?"]
    assert rewrite("What did she write?", earlier) == (
        "Ada Lovelace Babbage London What did she write?"
    )


def test_a_person_may_be_whoever_a_follow_up_named() -> None:
    earlier = ["Where does Anna Berg live?", "and Bob?"]
    assert rewrite("What does he pay?", earlier) == "Anna Berg Bob What does he pay?"


def test_where_no_name_is_known_a_person_is_looked_for_with_the_whole_query() -> None:
    earlier = ["who invented the telephone?"]
    assert rewrite("Was he married?", earlier) == "who invented the telephone Was he married?"


def test_the_first_of_a_conversation_is_leaned_on_whatever_its_form() -> None:
    assert is_follow_up("and the address?")
    assert rewrite("since when?", ["and the address?"]) == "and the address since when?"


@pytest.mark.parametrize(
    "query",
    [
        "what else happened this week",
        "what did you just run in this session",
        "did you save this file",
        "If the pump breaks, who repairs it?",
        "Is it true that the museum moves?",
        "Hat Paul seiner Schwester geschrieben?",
        "Gibt es in Husum ein Hallenbad?",
        "小王把他的车卖给谁了",
    ],
)
def test_a_determiner_an_expletive_and_a_pronoun_for_what_is_said_in_the_question_lean_on_nothing(
    query: str,
) -> None:
    assert not is_follow_up(query)


@pytest.mark.parametrize(
    "query",
    [
        "How does it compare to the diesel model?",
        "what about Berlin",
        "the other one",
        "and on Sunday?",
        "und wann?",
        "gilt das auch für DVDs?",
        "那他呢",
        "能洗吗",
    ],
)
def test_a_pronoun_for_nothing_in_the_question_and_an_ellipsis_lean(query: str) -> None:
    assert is_follow_up(query)


def test_what_is_longer_than_a_question_stands_alone() -> None:
    assert not is_follow_up("and why " * 40)


def test_a_follow_up_to_nothing_is_asked_as_it_is() -> None:
    assert rewrite("and why?", []) == "and why?"
    assert rewrite("and why?", ["why?", "and it?"]) == "and why?"


def test_of_a_long_query_the_beginning_is_taken() -> None:
    asked = rewrite("and why?", ["heron " * 1000])
    assert len(asked) <= LONGEST + len(" and why?")
    assert asked.endswith("heron and why?")


@given(query=st.text(max_size=80), earlier=st.lists(st.text(max_size=80), max_size=4))
def test_any_text_keeps_what_was_asked(query: str, earlier: list[str]) -> None:
    asked = rewrite(query, earlier)
    assert asked == query or asked.endswith(f" {query.strip()}")
    assert is_follow_up(query) or asked == query
