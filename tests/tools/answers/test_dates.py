from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.models import utc
from tools.answers.dates import PHRASES, Period
from tools.core.errors import InvalidArgumentsError

SUNDAY = datetime(2026, 11, 22, 12, tzinfo=UTC)


def days(text: str) -> tuple[str, str]:
    period = Period.parse(text, UTC, SUNDAY)
    return str(period.first), str(period.last)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-11-22", "2026-11-22"),
        ("Yesterday", "2026-11-21", "2026-11-21"),
        ("the day before yesterday", "2026-11-20", "2026-11-20"),
        ("tomorrow", "2026-11-23", "2026-11-23"),
        ("this week", "2026-11-16", "2026-11-22"),
        ("last  week", "2026-11-09", "2026-11-15"),
        ("next week", "2026-11-23", "2026-11-29"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("next month", "2026-12-01", "2026-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("last 7 days", "2026-11-16", "2026-11-22"),
        ("past 2 weeks", "2026-11-02", "2026-11-22"),
        ("last 3 months", "2026-08-01", "2026-11-22"),
        ("3 days ago", "2026-11-19", "2026-11-19"),
        ("a week ago", "2026-11-09", "2026-11-15"),
        ("11 months ago", "2025-12-01", "2025-12-31"),
        ("sunday", "2026-11-22", "2026-11-22"),
        ("last Sunday", "2026-11-15", "2026-11-15"),
        ("on monday", "2026-11-16", "2026-11-16"),
        ("in november", "2026-11-01", "2026-11-30"),
        ("December", "2025-12-01", "2025-12-31"),
        ("february 2024", "2024-02-01", "2024-02-29"),
        ("2026-11-22", "2026-11-22", "2026-11-22"),
        ("20261122", "2026-11-22", "2026-11-22"),
        ("2026-W47", "2026-11-16", "2026-11-22"),
        ("2026-w47", "2026-11-16", "2026-11-22"),
        ("2026-11", "2026-11-01", "2026-11-30"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2026", "2026-01-01", "2026-12-31"),
        ("2026-11-01 to 2026-11-03", "2026-11-01", "2026-11-03"),
        ("last week to yesterday", "2026-11-09", "2026-11-21"),
        ("from march to may", "2026-03-01", "2026-05-31"),
        ("between 1 March and 5 March", "2026-03-01", "2026-03-05"),
        ("since monday", "2026-11-16", "2026-11-22"),
        ("two weeks ago", "2026-11-02", "2026-11-08"),
        ("the last three days", "2026-11-20", "2026-11-22"),
        ("this weekend", "2026-11-21", "2026-11-22"),
        ("last weekend", "2026-11-14", "2026-11-15"),
        ("last November", "2025-11-01", "2025-11-30"),
        ("last March", "2026-03-01", "2026-03-31"),
        ("5 March 2024", "2024-03-05", "2024-03-05"),
        ("March 5, 2024", "2024-03-05", "2024-03-05"),
        ("on the 22nd of November", "2026-11-22", "2026-11-22"),
        ("november 23", "2025-11-23", "2025-11-23"),
    ],
)
def test_what_people_say_is_a_stretch_of_days(text: str, first: str, last: str) -> None:
    assert days(text) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2026-13", "2026-02-30", "2026-W54", "0000", "9999", "22.11.2026"),
        *("last 99999 days", "9999 years ago", "2026-11-03 to 2026-11-01", "to", "last fortnight"),
        *("31 february", "march 0", "march 2, 0000", "since", "since tomorrow", "٣ days ago"),
        " to ".join(["today"] * 1000),
    ],
)
def test_what_names_no_time_is_refused_with_what_would(text: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="names no time") as caught:
        days(text)
    assert "yesterday" in caught.value.next_actions[0]


def test_days_begin_where_the_caller_is() -> None:
    auckland = ZoneInfo("Pacific/Auckland")
    period = Period.parse("today", auckland, SUNDAY)  # where it is Monday already
    assert period.first == date(2026, 11, 23)
    assert period.start == datetime(2026, 11, 22, 11, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a_day_is_as_long_as_its_clocks_say(day: str, hours: int) -> None:
    period = Period.parse(day, ZoneInfo("Europe/Paris"), SUNDAY)
    assert period.end - period.start == pytest.approx(hours * 3600)


@pytest.mark.parametrize("phrase", PHRASES)
def test_every_phrase_that_is_offered_is_understood(phrase: str) -> None:
    assert Period.parse(phrase, UTC, SUNDAY).first <= Period.parse(phrase, UTC, SUNDAY).last


def test_a_title_says_the_days() -> None:
    assert Period.parse("yesterday", UTC, SUNDAY).title == "Saturday, 2026-11-21"
    assert Period.parse("last week", UTC, SUNDAY).title == "2026-11-09 to 2026-11-15"


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_any_text_at_any_time_is_a_period_or_refused(text: str, now: datetime) -> None:
    try:
        period = Period.parse(text, UTC, now)
    except InvalidArgumentsError:
        return
    assert period.start < period.end


@given(st.sampled_from(PHRASES), st.datetimes(timezones=st.just(UTC)))
def test_a_week_has_seven_days_whenever_it_is(phrase: str, now: datetime) -> None:
    try:
        period = Period.parse(phrase, UTC, now)
    except InvalidArgumentsError:  # at the edge of the calendar
        return
    if phrase.endswith("week"):
        assert period.last - period.first == timedelta(days=6)
        assert period.first.weekday() == 0


@pytest.mark.parametrize(
    ("seconds", "date"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (1.5, "1970-01-01T00:00:01.500000+00:00"),
        (1e18, "9999-12-31T23:59:59+00:00"),
        (-1e18, "0001-01-01T00:00:00+00:00"),
    ],
)
def test_every_second_has_a_date(seconds: float, date: str) -> None:
    assert utc(seconds).isoformat() == date
