from __future__ import annotations

import pytest

from tools.answers.calendar import utc


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
