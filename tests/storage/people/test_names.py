from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.people.names import NameMatch, fold, resolve

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
    "王小明",
    "約翰·史密斯",
    "Toolcrib",
    "Groß, Søren",
    "Iş\u0131l İnan",
    "J. R. R. Tolkien",
    "Dr. Maria Lopez",
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
        ("田中 太郎", "田中太郎", "partial"),
        ("田中太郎さん", "田中太郎", "partial"),
        ("王小明教授", "王小明", "partial"),
        ("約翰 史密斯", "約翰·史密斯", "folded"),
        ("soren gross", "Groß, Søren", "folded"),
        ("SØREN GROSS", "Groß, Søren", "folded"),
        ("isil inan", "Iş\u0131l İnan", "folded"),
        ("IŞIL İNAN", "Iş\u0131l İnan", "folded"),
        ("Prof. Dr. Schmidt", "Anna Schmidt", "partial"),
        ("A. Schmidt", "Anna Schmidt", "partial"),
        ("Schmidt, A.", "Anna Schmidt", "partial"),
        ("Maria Lopez", "Dr. Maria Lopez", "partial"),
        ("Mme Maria Lopez", "Dr. Maria Lopez", "partial"),
        ("John Ronald Reuel Tolkien", "J. R. R. Tolkien", "partial"),
        ("Tolkien, John R.R.", "J. R. R. Tolkien", "partial"),
        ("Jonh Smith", "John Smith", "fuzzy"),
        ("Anna Schmit", "Anna Schmidt", "fuzzy"),
        ("Schmit Anna", "Anna Schmidt", "fuzzy"),
        ("Gracia, Jose", "José García", "fuzzy"),
        ("Toolcrip", "Toolcrib", "fuzzy"),
        ("Dr. Anna Schmit", "Anna Schmidt", "fuzzy"),
        ("Schmit", "Anna Schmidt", "fuzzy"),
        ("Marai Lopez", "Dr. Maria Lopez", "fuzzy"),
    ],
)
def test_a_name_is_found_in_the_surest_way(asked: str, name: str, how: str) -> None:
    match = resolve(asked, KNOWN)[0]
    assert (match.name, match.how) == (name, how)


@pytest.mark.parametrize(
    "asked",
    [
        "Nobody",
        "Jo",
        "",
        "  ",
        "...",
        "Smithson",
        "C",
        "J",
        "A. S.",
        "Dr.",
        "田",
        "王",
        "a" * 10_000,
    ],
)
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


def test_an_alias_stands_for_its_name() -> None:
    known: list[str | tuple[str, str]] = [
        "Robert Smith",
        ("Bob", "Robert Smith"),
        ("Bobby", "Robert Smith"),
        ("Bob", "Bob Ray"),
    ]
    assert resolve("Bobby", known) == [NameMatch("Robert Smith", 1.0, "alias")]
    assert resolve("BOBBY", known) == [NameMatch("Robert Smith", 1.0, "folded")]
    assert resolve("Bob", known) == [
        NameMatch("Bob Ray", 1.0, "alias"),
        NameMatch("Robert Smith", 1.0, "alias"),
    ]
    assert resolve("Robert Smith", known) == [NameMatch("Robert Smith", 1.0, "exact")]
    assert [match.name for match in resolve("Bobbby", [*known, "Bobbin"])] == ["Robert Smith"]


def test_a_single_word_does_not_stand_for_all_who_have_it() -> None:
    assert resolve("Anna Schmidt", ["Anna", "Dr. Schmidt"]) == []


names = st.lists(
    st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=4, max_size=9).filter(
        lambda word: word not in {"prof", "dipl", "lady", "lord", "dame", "herr", "frau", "mlle"}
    ),
    min_size=2,
    max_size=3,
    unique=True,
)


@given(names)
def test_a_name_is_found_by_its_parts_in_any_order_and_case(words: list[str]) -> None:
    name = " ".join(word.capitalize() for word in words)
    for asked in (
        f"{words[-1]}, {' '.join(words[:-1])}",
        " ".join(reversed(words)).upper(),
        f"Dr. {name}",
        f"{words[0][0]}. {words[-1]}",
        words[-1],
    ):
        assert [match.name for match in resolve(asked, [name])] == [name], asked


@given(names, st.data())
def test_a_name_is_found_with_a_typo(words: list[str], data: st.DataObject) -> None:
    name = " ".join(words)
    at = data.draw(st.integers(0, len(name) - 2))
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    dropped = name[:at] + name[at + 1 :]
    for asked in (swapped, dropped):
        (match,) = resolve(asked, [name])
        assert match.name == name
        assert match.score > 0.5


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


def test_a_nul_is_a_blank_as_it_is_in_what_is_stored() -> None:
    assert fold("Ann\0Lee") == fold("Ann Lee")
