"""The dates that a text names, outright and from another day."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.retrieval.dates import NamedDate, Span, distances, named_dates, spans_named

MAY_8_2023 = 1_683_554_160.0  # a Monday


def span(first: str, last: str) -> Span:
    return Span(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("What did Eve buy on 8 May, 2023?", [(2023, 5, 8)]),
        ("on May 8th 2023", [(2023, 5, 8)]),
        ("the 1st of Sept. 2022", [(2022, 9, 1)]),
        ("in june 2021 and in July", [(2021, 6, None), (None, 7, None)]),
        ("last\n  December", [(None, 12, None)]),
        ("2023-05-08, or 2023-05", [(2023, 5, 8), (2023, 5, None)]),
        ("她在2021年5月8日做了什么", [(2021, 5, 8)]),
        ("2021年", [(2021, None, None)]),
        ("the budget of 2019", [(2019, None, None)]),
        ("in May, in May", [(None, 5, None)]),
        ("am 8. Mai 2023, im Oktober", [(2023, 5, 8), (None, 10, None)]),
        ("vom 08.05.2023", [(2023, 5, 8)]),
        ("5月8日", [(None, 5, 8)]),
    ],
)
def test_dates_are_read_as_people_write_them(
    text: str, dates: list[tuple[int | None, int | None, int | None]]
) -> None:
    assert named_dates(text) == tuple(NamedDate(*date) for date in dates)


@pytest.mark.parametrize(
    "text", ["May I go?", "they march on", "April's dog", "room 2456", "mayor 12", "1,999 things"]
)
def test_other_words_and_numbers_are_no_dates(text: str) -> None:
    assert named_dates(text) == ()


@pytest.mark.parametrize(
    ("date", "covered"),
    [
        (NamedDate(2023, 5, 8), True),
        (NamedDate(2023, 5), True),
        (NamedDate(2023), True),
        (NamedDate(None, 5), True),
        (NamedDate(None, 5, 9), False),
        (NamedDate(2022, 5, 8), False),
    ],
)
def test_a_date_covers_what_lies_within_it(date: NamedDate, covered: bool) -> None:
    assert date.covers(MAY_8_2023) is covered


@given(st.text(), st.floats(allow_nan=False))
def test_any_text_and_any_moment_have_an_answer(text: str, moment: float) -> None:
    for each in (*named_dates(text), NamedDate(2023)):
        assert each.covers(moment) in {True, False}


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("in early May 2023", "2023-05-01", "2023-05-11"),
        ("Mitte Mai 2023", "2023-05-11", "2023-05-21"),
        ("at the end of February 2024", "2024-02-21", "2024-02-29"),
        ("2023年5月底", "2023-05-21", "2023-05-31"),
        ("the first weekend of August 2023", "2023-08-05", "2023-08-06"),
        ("am letzten Wochenende im August 2023", "2023-08-26", "2023-08-27"),
        ("the second week of June 2023", "2023-06-08", "2023-06-14"),
    ],
)
def test_parts_of_months_are_spans(text: str, first: str, last: str) -> None:
    assert named_dates(text) == (span(first, last),)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I ran yesterday.", "2023-05-07", "2023-05-07"),
        ("vorgestern", "2023-05-06", "2023-05-06"),
        ("昨天我跑步了", "2023-05-07", "2023-05-07"),
        ("Last Friday we met", "2023-05-05", "2023-05-05"),
        ("last Monday", "2023-05-01", "2023-05-01"),
        ("next Monday", "2023-05-15", "2023-05-15"),
        ("am Mittwoch", "2023-05-03", "2023-05-03"),
        ("上周五", "2023-05-05", "2023-05-05"),
        ("last weekend", "2023-05-06", "2023-05-07"),
        ("letzte Woche", "2023-05-01", "2023-05-07"),
        ("two weeks ago", "2023-04-21", "2023-04-27"),
        ("vor zwei Wochen", "2023-04-21", "2023-04-27"),
        ("两周前", "2023-04-21", "2023-04-27"),
        ("a day ago", "2023-05-07", "2023-05-07"),
        ("last month", "2023-04-01", "2023-04-30"),
        ("下个月", "2023-06-01", "2023-06-30"),
        ("vor ein paar Jahren", "2020-01-01", "2020-12-31"),
        ("去年", "2022-01-01", "2022-12-31"),
    ],
)
def test_days_are_counted_from_when_it_was_said(text: str, first: str, last: str) -> None:
    assert spans_named(text, MAY_8_2023) == (span(first, last),)


@pytest.mark.parametrize("text", ["It lasts.", "on and on", "vor dem Haus", "上海", "guten Morgen"])
def test_other_words_count_from_no_day(text: str) -> None:
    assert spans_named(text, MAY_8_2023) == ()


@pytest.mark.parametrize(
    ("text", "event", "first", "last"),
    [
        ("two weeks before the trip to Rome?", "the trip to Rome", "2023-04-21", "2023-04-27"),
        ("the week after the move", "the move", "2023-05-09", "2023-05-15"),
        ("the Friday before the fair", "the fair", "2023-05-05", "2023-05-05"),
        ("am Tag nach der Prüfung", "der Prüfung", "2023-05-09", "2023-05-09"),
        ("在旅行前两周去了哪里", "旅行", "2023-04-21", "2023-04-27"),
    ],
)
def test_events_are_counted_from_as_well(text: str, event: str, first: str, last: str) -> None:
    (found,) = distances(text)
    assert found.event == event
    assert found.span(MAY_8_2023) == span(first, last)


@given(st.text(), st.floats(allow_nan=False))
def test_no_text_and_no_moment_break_the_reading(text: str, moment: float) -> None:
    for words in (text, "999 years ago", "in 12 days", "999年前"):
        for found in spans_named(words, moment):
            assert found.covers(found.middle)
    for distance in (*distances(text), *distances("999 years before the war")):
        assert distance.span(moment) is None or distance.event
