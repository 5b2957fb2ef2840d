from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.people.likeness import NEAR_FLOOR, likely, nearest

KNOWN = ["anna schmidt", "anne schmitt", "bernd schmidt", "john smith", "dr weiss"]


def test_the_first_way_that_finds_any_decides() -> None:
    assert [(each.folded, each.how) for each in likely("schmidt", KNOWN)] == [
        ("anna schmidt", "partial"),
        ("bernd schmidt", "partial"),
    ]
    assert [(each.folded, each.how) for each in likely("ana schmidt", KNOWN)] == [
        ("anna schmidt", "fuzzy"),
    ]


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("ana", "anna schmidt"),
        ("jon smyth", "john smith"),
        ("prof weis", "dr weiss"),
        ("schmitt anna", "anna schmidt"),
    ],
)
def test_the_nearest_are_also_those_hardly_meant(asked: str, first: str) -> None:
    assert nearest(asked, KNOWN)[0].folded == first


def test_what_is_like_nothing_has_no_nearest() -> None:
    assert nearest("quentin", KNOWN) == nearest("", KNOWN) == nearest("x", []) == []


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=8))
def test_what_is_likely_is_near_and_ranked(asked: str, names: list[str]) -> None:
    near = nearest(asked, names)
    assert {each.folded for each in likely(asked, names)} <= {each.folded for each in near}
    assert [each.score for each in near] == sorted((each.score for each in near), reverse=True)
    assert all(each.folded in names and 0 < each.score <= 1 for each in near)


@given(st.text(min_size=1, max_size=30))
def test_a_name_is_nearest_to_itself(name: str) -> None:
    assert NEAR_FLOOR < 1
    assert all(each.score == 1 for each in nearest(name, [name]))
