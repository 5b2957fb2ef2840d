from typing import Any

import pytest

from tools.answers.params import DAY_END, TimeWindow, instant
from tools.core.errors import InvalidArgumentsError

DAY = 86_400.0
START = 1_795_219_200.0  # 2026-11-21T00:00:00Z


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        ("0", 0.0),
        ("-1.5", -1.5),
        ("1795219200", START),
        ("2026-11-21", START),
        ("20261121", START),
        ("2026-11-21T00:00:00+01:00", START - 3600),
    ],
)
def test_a_time_is_unix_seconds_or_iso_8601(value: float | str, seconds: float) -> None:
    assert TimeWindow(start=value).to_range().start == seconds


def test_a_zone_is_that_of_times_without_one_and_a_day_ends_with_its_last_moment() -> None:
    window = TimeWindow(start="2026-11-21", end="2026-11-21", timezone="Europe/Paris").to_range()
    assert window.start == START - 3600
    assert window.end == pytest.approx(START - 3600 + DAY, abs=1e-3)


@pytest.mark.parametrize(
    "given",
    [
        {"start": "2026"},
        {"start": "yesterday"},
        {"start": "nan"},
        {"end": "99999999"},
        {"timezone": "Mars/Olympus"},
        {"start": 2, "end": 1},
    ],
)
def test_what_is_no_time_is_refused_with_the_fix(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        TimeWindow(**given).to_range()
    assert refused.value.next_actions


def test_a_moment_of_its_own_is_read_alike_and_lies_within_the_calendar() -> None:
    assert instant("event_time", None) is None
    assert instant("event_time", 0) == 0
    assert instant("event_time", "2026-11-21T00:00", "Europe/Paris") == START - 3600
    assert instant("event_time", "2026-11-21", "UTC") == START + DAY / 2
    end = instant("until", "2026-11-21", "UTC", DAY_END)
    assert end == pytest.approx(START + DAY, abs=1e-3)


@pytest.mark.parametrize(
    ("value", "zone", "named"),
    [
        (1e13, "UTC", "event_time"),
        (-1e13, "UTC", "event_time"),
        ("soon", "UTC", "event_time"),
        (0, "Mars/Olympus", "timezone"),
    ],
)
def test_a_moment_that_is_none_is_refused_by_its_name(
    value: float | str, zone: str, named: str
) -> None:
    with pytest.raises(InvalidArgumentsError, match=f"^{named}: ") as refused:
        instant("event_time", value, zone)
    assert refused.value.next_actions
