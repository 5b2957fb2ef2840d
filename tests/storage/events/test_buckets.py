from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.events.buckets import DAY, MONTH, SECOND, WEEK, Bucket
from storage.models import TimeRange

LEVELS = st.sampled_from([SECOND, DAY, WEEK, MONTH])
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.timestamp())
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _at(year: int, month: int, day: int) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("moment", "labels"),
    [
        (0, ("1970-01-01T00:00:00Z", "1970-01-01", "1970-W01", "1970-01")),
        (-0.5, ("1969-12-31T23:59:59Z", "1969-12-31", "1970-W01", "1969-12")),
        (_at(2026, 12, 31), ("2026-12-31T00:00:00Z", "2026-12-31", "2026-W53", "2026-12")),
        (_at(2027, 1, 3), ("2027-01-03T00:00:00Z", "2027-01-03", "2026-W53", "2027-01")),
        (_at(2027, 1, 4), ("2027-01-04T00:00:00Z", "2027-01-04", "2027-W01", "2027-01")),
        (_at(2024, 12, 30), ("2024-12-30T00:00:00Z", "2024-12-30", "2025-W01", "2024-12")),
        (_at(1, 1, 1), ("0001-01-01T00:00:00Z", "0001-01-01", "0001-W01", "0001-01")),
        (1e300, ("9999-12-31T23:59:59Z", "9999-12-31", "9999-W52", "9999-12")),
        (-1e300, ("0001-01-01T00:00:00Z", "0001-01-01", "0001-W01", "0001-01")),
    ],
)
def test_a_moment_has_a_bucket_of_each_level(moment: float, labels: tuple[str, ...]) -> None:
    assert tuple(Bucket.of(level, moment).label for level in range(4)) == labels


@given(LEVELS, MOMENTS)
def test_a_bucket_holds_its_moment_and_its_label_names_it(level: int, moment: float) -> None:
    bucket = Bucket.of(level, moment)
    assert bucket.start <= moment < bucket.end
    assert Bucket.parse(bucket.label) == bucket
    assert Bucket.of(level, bucket.start) == bucket


@given(LEVELS, MOMENTS)
def test_buckets_follow_each_other_without_a_gap(level: int, moment: float) -> None:
    bucket = Bucket.of(level, moment)
    if bucket.end <= Bucket.of(SECOND, 1e300).start:
        assert Bucket.of(level, bucket.end) == Bucket(level, bucket.index + 1)
    assert bucket.end - bucket.start == len(bucket.days) * 86_400 or level == SECOND


@given(LEVELS, MOMENTS, MOMENTS)
def test_their_order_is_that_of_time(level: int, one: float, other: float) -> None:
    early, late = Bucket.of(level, min(one, other)), Bucket.of(level, max(one, other))
    assert early <= late
    assert (early.index <= late.index) is (early.start <= late.start) is True


@given(st.dates())
def test_weeks_and_months_are_those_of_the_calendar(on: date) -> None:
    moment = datetime(on.year, on.month, on.day, 12, tzinfo=UTC)
    week, month = (Bucket.of(level, moment.timestamp()) for level in (WEEK, MONTH))
    year, number, weekday = on.isocalendar()
    assert week.label == f"{year:04}-W{number:02}"
    assert month.label == on.isoformat()[:7]
    day = Bucket.of(DAY, moment.timestamp())
    assert week.days.index(day.index) == weekday - 1
    assert month.days.index(day.index) == on.day - 1
    assert day.month == month


def test_a_week_counts_to_the_month_of_its_thursday() -> None:
    assert Bucket.parse("2026-W49").days.start == Bucket.parse("2026-11-30").index
    assert Bucket.parse("2026-W49").month.label == "2026-12"
    assert Bucket.parse("2026-W44").month.label == "2026-10"  # Thursday the 29th
    assert Bucket.parse("2026-W53").month.label == "2026-12"
    assert Bucket.parse("9999-W52").month.label == "9999-12"


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("2026-11-22", "Sunday, 22 November 2026"),
        ("2026-11-22T09:30:00Z", "Sunday, 22 November 2026"),
        ("2026-W49", "Week 49 of 2026, 30 November 2026 to 6 December 2026"),
        ("2026-11", "November 2026"),
        ("9999-W52", "Week 52 of 9999, 27 December 9999 to 31 December 9999"),
        ("0001-01", "January 1"),
    ],
)
def test_a_bucket_has_a_name_for_people(label: str, title: str) -> None:
    assert Bucket.parse(label).title == title


@pytest.mark.parametrize(
    "label",
    [
        *("", "2026", "2026-13", "2026-00", "2026-02-29", "2026-W54", "2025-W53", "2026-W00"),
        *("0000-01", "2026-11-22T10:00:00", "2026-11-22T25:00:00Z", "2026-11-22 "),
        "\uff12\uff10\uff12\uff16-11",
    ],
)
def test_a_label_that_names_none_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Bucket.parse(label)


@given(LEVELS, MOMENTS, st.none() | MOMENTS, st.none() | MOMENTS)
def test_a_bucket_overlaps_a_range_that_shares_a_moment_with_it(
    level: int, moment: float, start: float | None, end: float | None
) -> None:
    bucket = Bucket.of(level, moment)
    low = bucket.start if start is None else max(start, bucket.start)
    shared = low < bucket.end and (end is None or low <= end)
    assert bucket.overlaps(TimeRange(start, end)) is shared


def test_the_ends_of_a_range_are_within_and_the_end_of_a_bucket_is_not() -> None:
    day = Bucket.parse("2026-11-22")
    assert day.overlaps(TimeRange(None, day.start))
    assert not day.overlaps(TimeRange(day.end, None))
    assert day.overlaps(TimeRange(day.end - 0.5, None))
    assert not day.overlaps(TimeRange(None, day.start - 0.5))
    assert Bucket.parse("1970-01-01").overlaps(TimeRange(0, 0))
    assert not day.overlaps(TimeRange(0, 0))


@given(MOMENTS)
def test_a_second_is_labelled_as_the_clock_reads(moment: float) -> None:
    clock = EPOCH + timedelta(seconds=moment // 1)
    assert Bucket.of(SECOND, moment).label == clock.isoformat()[:19] + "Z"
