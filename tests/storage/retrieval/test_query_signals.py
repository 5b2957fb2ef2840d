"""What a query says of where its answer stands."""

from datetime import date

import pytest

from storage.retrieval.dates import NamedDate, Span
from storage.retrieval.query_signals import (
    cues_of,
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
