from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.retrieval.dates import NamedDate, named_dates

MAY_8_2023 = 1_683_554_160.0


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
    for date in (*named_dates(text), NamedDate(2023)):
        assert date.covers(moment) in {True, False}
