"""Recent answers: how long they are kept, and which other wordings take them over."""

from __future__ import annotations

import pytest

from storage.retrieval.unified import CACHED_SECONDS, MOST_CACHED, AnswerCache


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def known(cache: AnswerCache[str], query: str, key: str = "key") -> str:
    found = cache.find(key, query)
    return "" if found is None else found[1]


def test_an_answer_is_found_under_its_key_until_it_is_old() -> None:
    clock = Clock()
    cache: AnswerCache[str] = AnswerCache(clock)
    cache.add("key", "heron", "heron")
    clock.now = CACHED_SECONDS
    assert (known(cache, "heron"), known(cache, "heron", "other")) == ("heron", "")
    cache.add("key", "crane", "crane")
    clock.now += 0.1
    assert (known(cache, "heron"), known(cache, "crane")) == ("", "crane")


def test_of_too_many_answers_the_oldest_go() -> None:
    cache: AnswerCache[str] = AnswerCache()
    for number in range(MOST_CACHED + 1):
        cache.add(number, "heron", "heron")
    cache.add(1, "heron", "heron")
    cache.add("more", "heron", "heron")
    found = [number for number in range(4) if cache.find(number, "heron")]
    assert found == [1, 3]


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("price of the blue kettle", "the price of a blue kettle"),
        ("Blue kettle: price", "blue kettle price"),
        ("蓝色水壶的价格", "蓝色水壶的价格。"),
        ("Is the kettle blue?", "the kettle is blue"),
    ],
)
def test_what_differs_in_nothing_that_finds_is_one_question(query: str, other: str) -> None:
    cache: AnswerCache[str] = AnswerCache()
    cache.add("key", query, query)
    assert known(cache, other) == query


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("Anna's phone", "Bob's phone"),
        ("the blue kettle whistles loudly", "the blue kettle whistles"),
        ("release 3.5", "release 3 5"),
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
    cache.add("key", query, query)
    assert known(cache, other) == ""
