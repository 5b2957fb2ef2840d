"""Recent answers: how long they are kept, and which other wordings take them over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.retrieval.answer_cache import LIFE_SECONDS, MOST_ANSWERS, AnswerCache
from storage.retrieval.query_text import QueryText


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def known(
    cache: AnswerCache[str], query: str, key: str = "key", *, finds_nothing: bool = True
) -> str:
    found = cache.find(key, QueryText(query), lambda _: finds_nothing)
    return "" if found is None else found[1]


def test_an_answer_is_found_under_its_key_until_it_is_old() -> None:
    clock = Clock()
    cache: AnswerCache[str] = AnswerCache(clock)
    cache.add("key", QueryText("heron"), "heron")
    clock.now = LIFE_SECONDS
    assert (known(cache, "heron"), known(cache, "heron", "other")) == ("heron", "")
    cache.add("key", QueryText("crane"), "crane")
    clock.now += 0.1
    assert (known(cache, "heron"), known(cache, "crane")) == ("", "crane")


def test_of_too_many_answers_the_oldest_go() -> None:
    cache: AnswerCache[str] = AnswerCache()
    for number in range(MOST_ANSWERS + 1):
        cache.add(number, QueryText("heron"), "heron")
    cache.add(1, QueryText("heron"), "heron")
    cache.add("more", QueryText("heron"), "heron")
    found = [
        number for number in range(4) if cache.find(number, QueryText("heron"), lambda _: True)
    ]
    assert found == [1, 3]


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("price of the blue kettle", "the price of a blue kettle"),
        ("the blue kettle whistles loudly", "the blue kettle whistles"),
        ("Blue kettle: price", "blue kettles price"),
        ("蓝色水壶的价格", "蓝色水壶的价格吧"),
        ("flights to Rome in May 2026", "flights to Rome in May 2026 please"),
    ],
)
def test_what_differs_in_nothing_that_finds_is_one_question(query: str, other: str) -> None:
    cache: AnswerCache[str] = AnswerCache()
    cache.add("key", QueryText(query), query)
    assert known(cache, other) == query
    if set(QueryText(query).terms) != set(QueryText(other).terms):
        assert known(cache, other, finds_nothing=False) == ""


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("Anna's phone", "Bob's phone"),
        ("trains from Rome to Paris by night", "trains from Paris to Rome by night"),
        ("kettles that are not blue or round", "kettles that are blue or round"),
        ("kettles without blue round lids", "kettles with blue round lids"),
        ("kettle model 7 blue round lid", "kettle model 8 blue round lid"),
        ("my blue kettle price", "her blue kettle price"),
        ("what is the blue kettle price", "where is the blue kettle price"),
        ("blue kettle price before Friday", "blue kettle price after Friday"),
        ("blue kettles that don't leak water", "blue kettles that leak water"),
        ("蓝色水壶会漏水", "蓝色水壶不会漏水"),
        ("sales of tea in Turku in May", "sales of tea in Turku in June"),
        ("Verkauf ohne Zucker und Milch", "Verkauf mit Zucker und Milch"),
    ],
)
def test_what_means_something_else_is_another_question(query: str, other: str) -> None:
    cache: AnswerCache[str] = AnswerCache()
    cache.add("key", QueryText(query), query)
    assert known(cache, other) == ""


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_difference_is_the_same_both_ways(query: str, other: str) -> None:
    one, two = QueryText(query), QueryText(other)
    there, back = one.difference(two), two.difference(one)
    assert (there is None) == (back is None)
    assert set(there or ()) == set(back or ())
