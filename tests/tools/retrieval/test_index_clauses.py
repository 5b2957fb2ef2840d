from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.retrieval.index import MAX_CLAUSES, clauses_of


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Send the report to Ann", []),
        (
            "Send the report to Ann and then delete the draft folder",
            ["Send the report to Ann", "delete the draft folder"],
        ),
        (
            "Book a flight to Rome. Finally tell my colleagues about it",
            ["Book a flight to Rome.", "Finally tell my colleagues about it"],
        ),
        ("Find red, green and blue shoes", []),  # a list of things is one request
        ("查询北京的天气。然后发送一封邮件", ["查询北京的天气。", "然后发送一封邮件"]),
        (
            "Sort files by size\nrename every picture",
            ["Sort files by size", "rename every picture"],
        ),
    ],
)
def test_a_request_for_several_things_is_split(query: str, expected: list[str]) -> None:
    assert [query[start:end] for start, end in clauses_of(query)] == expected


@given(
    st.text() | st.lists(st.sampled_from(["send mail", " and ", ", ", ".", "\n", "x"])).map("".join)
)
def test_clauses_follow_each_other_within_the_query(query: str) -> None:
    clauses = clauses_of(query)
    assert len(clauses) <= MAX_CLAUSES
    assert len(clauses) != 1
    places = [place for clause in clauses for place in clause]
    assert places == sorted(places)
    assert all(0 <= start < end <= len(query) for start, end in clauses)
