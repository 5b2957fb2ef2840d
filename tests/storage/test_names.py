from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.names import NameMatch, fold, resolve

KNOWN = [
    "Anna Schmidt",
    "José García",
    "John Smith",
    "Smith, Jane",
    "Conan O'Brien",
    "Jean-Luc Picard",
    "C++",
    "C#",
    "田中太郎",
    "Toolcrib",
]


@pytest.mark.parametrize(
    ("asked", "name", "how"),
    [
        ("John Smith", "John Smith", "exact"),
        ("john  SMITH", "John Smith", "folded"),
        ("Jose Garcia", "José García", "folded"),
        ("Jose\u0301 Garci\u0301a", "José García", "folded"),
        ("Smith, John", "John Smith", "folded"),
        ("Jane Smith", "Smith, Jane", "folded"),
        ("Conan O\u2019Brien", "Conan O'Brien", "folded"),
        ("jean luc picard", "Jean-Luc Picard", "folded"),
        ("c++", "C++", "folded"),
        ("Schmidt", "Anna Schmidt", "partial"),
        ("Schmidt Anna", "Anna Schmidt", "partial"),
        ("Dr. Anna Schmidt", "Anna Schmidt", "partial"),
        ("田中", "田中太郎", "partial"),
        ("Jonh Smith", "John Smith", "fuzzy"),
        ("Anna Schmit", "Anna Schmidt", "fuzzy"),
        ("Schmit Anna", "Anna Schmidt", "fuzzy"),
        ("Gracia, Jose", "José García", "fuzzy"),
        ("Toolcrip", "Toolcrib", "fuzzy"),
    ],
)
def test_a_name_is_found_in_the_surest_way(asked: str, name: str, how: str) -> None:
    match = resolve(asked, KNOWN)[0]
    assert (match.name, match.how) == (name, how)


@pytest.mark.parametrize("asked", ["Nobody", "Jo", "", "  ", "...", "Smithson", "C", "a" * 10_000])
def test_an_unlike_name_finds_nothing(asked: str) -> None:
    assert resolve(asked, KNOWN) == []


def test_a_sure_match_is_not_diluted_by_likely_ones() -> None:
    assert resolve("Anna", ["Anna", "Anna Schmidt", "anna"]) == [NameMatch("Anna", 1.0, "exact")]


def test_several_matches_come_best_first_and_not_more_than_asked_for() -> None:
    known = ["Smith and Sons Limited", "John Smith", "Al Smith", "Jane A. Smith"]
    found = resolve("Smith", known, limit=2)
    assert [match.name for match in found] == ["Al Smith", "John Smith"]
    assert found[0].score > found[1].score


def test_every_spelling_of_one_name_is_found() -> None:
    found = resolve("JOSE GARCIA", ["José García", "Jose Garcia", "Other"])
    assert [match.name for match in found] == ["Jose Garcia", "José García"]


@given(st.text(min_size=1))
def test_a_known_name_finds_itself(name: str) -> None:
    assert resolve(name, ["Other", name]) == [NameMatch(name, 1.0, "exact")]


@given(st.text(), st.lists(st.text(max_size=20), max_size=8))
def test_scores_are_shares_and_fuzzy_ones_above_the_floor(name: str, known: list[str]) -> None:
    for match in resolve(name, known):
        assert match.name in known
        assert 0 < match.score <= 1
        assert match.score


@given(st.text())
def test_folding_ignores_case_and_space(name: str) -> None:
    assert fold(f"  {name} ") == fold(name)
