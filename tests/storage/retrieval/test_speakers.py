"""Who said a turn, and whether a query names them."""

from __future__ import annotations

import pytest

from storage.retrieval.speakers import named_speakers, speaker_of


def test_a_heading_begins_with_the_speaker() -> None:
    assert speaker_of("Ann Lee, 8 May 2023") == "Ann Lee"
    assert speaker_of("User, 2023-05-08T10:00:00Z") == "User"
    assert not speaker_of("How we moved the whole shed last year")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What did Ann buy?", {"Ann Lee"}),
        ("what did ann's brother say to jürgen", {"Ann Lee", "Jürgen"}),
        ("what will happen", set()),
        ("What does Will plan?", {"Will"}),
        ("王芳说了什么", {"王芳"}),
        ("Which annual fee?", set()),
    ],
)
def test_a_name_is_known_by_a_word_of_it(query: str, named: set[str]) -> None:
    assert named_speakers(query, ["Ann Lee", "Jürgen", "Will", "王芳", ""]) == named
