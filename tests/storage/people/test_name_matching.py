from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.people.name_matching import NEAR_FLOOR, likely, nearest
from storage.tokenize import fold

KNOWN = [
    *("Anna Schmidt", "José García", "John Smith", "Smith, Jane", "Conan O'Brien"),
    *(
        *(
            "Jean-Luc Picard",
            "C++",
            "C#",
            "田中太郎",
            "王小明",
            "約翰·史密斯",
            "Toolcrib",
            "Groß, Søren",
        ),
    ),
    *("Iş\u0131l İnan", "J. R. R. Tolkien", "Dr. Maria Lopez"),
]


def named(asked: str, known: Sequence[str]) -> list[tuple[str, str]]:
    """The spellings that a name matches, each with the way."""
    spellings = {fold(each): each for each in known}
    if fold(asked) in spellings:
        return [(spellings[fold(asked)], "folded")]
    return [(spellings[each.folded], each.how) for each in likely(fold(asked), spellings)]


@pytest.mark.parametrize(
    ("asked", "name", "how"),
    [
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
    assert named(asked, KNOWN)[0] == (name, how)


@pytest.mark.parametrize(
    "asked",
    [
        *("Nobody", "Jo", "", "  ", "...", "Smithson", "C", "J", "A. S.", "Dr.", "田", "王"),
        "a" * 10_000,
    ],
)
def test_an_unlike_name_finds_nothing(asked: str) -> None:
    assert named(asked, KNOWN) == []


def test_several_matches_come_best_first() -> None:
    known = ["smith and sons limited", "john smith", "al smith", "jane a smith"]
    found = likely("smith", known)
    assert [match.folded for match in found][:2] == ["al smith", "john smith"]
    assert found[0].score > found[1].score


def test_a_single_word_does_not_stand_for_all_who_have_it() -> None:
    assert named("Anna Schmidt", ["Anna", "Dr. Schmidt"]) == []


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
        assert [spelling for spelling, _ in named(asked, [name])] == [name], asked


@given(names, st.data())
def test_a_name_is_found_with_a_typo(words: list[str], data: st.DataObject) -> None:
    name = " ".join(words)
    at = data.draw(st.integers(0, len(name) - 2))
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    dropped = name[:at] + name[at + 1 :]
    for asked in (swapped, dropped):
        (match,) = likely(fold(asked), [name])
        assert match.folded == name
        assert match.score > 0.5


@given(st.text(), st.lists(st.text(max_size=20), max_size=8))
def test_scores_are_shares(name: str, known: list[str]) -> None:
    for match in likely(fold(name), known):
        assert match.folded in known
        assert 0 < match.score <= 1


@given(st.text())
def test_folding_ignores_case_and_space(name: str) -> None:
    assert fold(f"  {name} ") == fold(name)


def test_a_nul_is_a_blank_as_it_is_in_what_is_stored() -> None:
    assert fold("Ann\0Lee") == fold("Ann Lee")


FOLDED = ["anna schmidt", "anne schmitt", "bernd schmidt", "john smith", "dr weiss"]


def test_the_first_way_that_finds_any_decides() -> None:
    assert [(each.folded, each.how) for each in likely("schmidt", FOLDED)] == [
        ("anna schmidt", "partial"),
        ("bernd schmidt", "partial"),
    ]
    assert [(each.folded, each.how) for each in likely("ana schmidt", FOLDED)] == [
        ("anna schmidt", "fuzzy")
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
    assert nearest(asked, FOLDED)[0].folded == first


def test_what_is_like_nothing_has_no_nearest() -> None:
    assert nearest("quentin", FOLDED) == nearest("", FOLDED) == nearest("x", []) == []


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
