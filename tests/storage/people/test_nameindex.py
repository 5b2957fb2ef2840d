import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.directory.classify import name_in
from storage.people.nameindex import NameIndex

NAMES = [
    *("Theresa M. Boyle", "Tim Boyle", "Jan van der Berg", "Mary-Ann Smith-Jones"),
    *("Siobhán O'Neill", "María José García López", "王小明", "Li Ng", "Wei Zhang", "Wei Zheng"),
    *("Wang Daming (王大明)", "J. Hartley", "Prof. Otto Weiß, PhD"),
]
INDEX = NameIndex((owner, name, False) for owner, name in enumerate(NAMES))


def _found(asked: str) -> list[str]:
    return [NAMES[each.owner] for each in INDEX.find(asked, 5)]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("boyle, theresa m.", "Theresa M. Boyle"),
        ("Theresa Boyle", "Theresa M. Boyle"),
        ("Theresa Margaret Boyle", "Theresa M. Boyle"),
        ("boyle t m", "Theresa M. Boyle"),
        ("Boyle TM", "Theresa M. Boyle"),
        ("heresa Boyle", "Theresa M. Boyle"),
        ("Theres aBoyle", "Theresa M. Boyle"),
        ("Vandenberg", "Jan van der Berg"),
        ("vanderberg, jan", "Jan van der Berg"),
        ("Berg, Jan van der", "Jan van der Berg"),
        ("Maryann Smithjones", "Mary-Ann Smith-Jones"),
        ("mary ann smith", "Mary-Ann Smith-Jones"),
        ("oneill siobhan", "Siobhán O'Neill"),
        ("Siobhan O Neill", "Siobhán O'Neill"),
        ("Garcia, Maria", "María José García López"),
        ("小明", "王小明"),
        ("王小明教授", "王小明"),
        ("Dr. 王小明", "王小明"),
        ("王大明", "Wang Daming (王大明)"),
        ("Wang Daming", "Wang Daming (王大明)"),
        ("Ng Li", "Li Ng"),
        ("James Hartley", "J. Hartley"),
        ("Otto Weiss", "Prof. Otto Weiß, PhD"),
        ("dr weiss", "Prof. Otto Weiß, PhD"),
    ],
)
def test_a_name_is_found_as_it_is_asked_for(asked: str, name: str) -> None:
    assert _found(asked)[:1] == [name]


def test_what_is_asked_for_exactly_leaves_typos_out() -> None:
    assert _found("Wei Zhang") == ["Wei Zhang"]
    assert set(_found("Wei Zhong")) == {"Wei Zhang", "Wei Zheng"}


def test_a_surname_finds_all_who_have_it_the_shorter_name_first() -> None:
    assert _found("boyle") == ["Tim Boyle", "Theresa M. Boyle"]


@pytest.mark.parametrize(
    "asked", ["", "  ", "t", "T. M.", "who", "immunotherapy", "Boyle X", "cancer genomics", "明"]
)
def test_what_is_no_name_finds_nobody(asked: str) -> None:
    assert _found(asked) == []


def test_an_owner_with_aliases_is_found_once() -> None:
    index = NameIndex([(0, "Robert Stone", False), (0, "Bob Stone", True)])
    assert [(each.spelling, each.how) for each in index.find("Stone", 5)] == [
        ("Bob Stone", "partial")
    ]
    assert [each.how for each in index.find("Bob Stone", 5)] == ["alias"]


@given(st.text(max_size=40))
def test_whatever_is_asked_the_scores_are_shares(asked: str) -> None:
    found = INDEX.find(asked, 3)
    assert len(found) <= 3
    assert all(0 < each.score <= 1 for each in found)
    assert len({each.owner for each in found}) == len(found)


@given(st.integers(0, len(NAMES[5])), st.sampled_from("aeinrst"))
def test_a_name_with_a_letter_too_many_anywhere_is_found(at: int, letter: str) -> None:
    name = NAMES[5]
    assert _found(name[:at] + letter + name[at:])[:1] == [name]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("who is dr smith", "dr smith"),
        ("Who is Dr. Smith?", "Dr. Smith"),
        ("who's Theresa Boyle?", "Theresa Boyle"),
        ("please tell me about Theresa Boyle", "Theresa Boyle"),
        ("find Theresa Boyle's profile", "Theresa Boyle"),
        ("contact details of Theresa Boyle", "Theresa Boyle"),
        ("Do you know anyone named Boyle?", "Boyle"),
        ("谁是王小明?", "王小明"),
        ("王小明是谁", "王小明"),
        ("Theresa Boyle", "Theresa Boyle"),
        ("Boyle, Theresa", "Boyle, Theresa"),
        ("Find", "Find"),
        ("", ""),
    ],
)
def test_a_question_around_a_name_is_taken_off(question: str, name: str) -> None:
    assert name_in(question) == name
