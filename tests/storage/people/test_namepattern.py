"""Where a text says a name."""

from __future__ import annotations

import pytest

from storage.people.saidnames import NamePattern


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann Lee", "they met ANN LEE's cat"),
        ("Ann Lee", "a line that ends with Ann\nLee"),
        ("Lee, Ann", "Ann Lee"),
        ("O'Brien", "Obrien was here"),
        ("OBrien", "it is O\u2019Brien\u2019s turn"),
        ("Zo\u00eb M\u00fcller", "zoe muller"),
        ("Mary-Ann", "Mary Ann"),
        ("J. R. R. Tolkien", "by J.R.R. Tolkien"),
        ("Dr. Berg", "ask Dr Berg"),
        ("Node.js", "needs Node.js."),
        ("C++", "in C++, of course"),
        ("AT&T", "at&t!"),
        ("Phoenix", "das phoenix projekt"),
        ("Jean-Luc", "Jean-Luc said so"),
        ("\u674e\u660e", "\u6628\u5929\u674e\u660e\u8bf4"),
        ("\u738b \u5c0f\u660e", "\u738b\u5c0f\u660e\u6765\u4e86"),
        ("\uae40\ubbfc\uc218", "\uae40\ubbfc\uc218\ub294"),
        ("Ann", "\u5f20Ann\u8bf4"),
        ("May", "May works on the budget."),
        ("May", "I met May there."),
        ("may", "I met May there."),
        ("Will", "Will leads it."),
        ("US", "made in the US"),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, text: str) -> None:
    assert NamePattern(name, of_person=True).is_in(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann", "Annabel cannot plan"),
        ("Ann Lee", "This was Ann. Lee came later."),
        ("Ann Lee", "written by Ann\n\nLee arrived"),
        ("Jean", "Jean-Luc"),
        ("Luc", "Jean-Luc"),
        ("Shell", "She'll be back, she'll"),
        ("\u30a2\u30f3", "\u30a2\u30f3\u30ca"),
        ("A", "A dog"),
        ("it", "It is late"),
        ("US", "let us go"),
        ("Mark", "leave a mark"),
        ("Mark", "Mark the day."),
        ("May", "we may go"),
        ("May", "May I go?"),
        ("May", "in May, and May 2024"),
        ("Will", "It will. Will the tests pass?"),
    ],
)
def test_other_words_are_no_name(name: str, text: str) -> None:
    assert not NamePattern(name, of_person=True).is_in(text)


def test_only_a_person_is_not_meant_by_a_double_name() -> None:
    assert NamePattern("Acme", of_person=False).is_in("Acme-Labs and Neo-Acme")
    assert not NamePattern("Acme", of_person=True).is_in("Acme-Labs and Neo-Acme")
