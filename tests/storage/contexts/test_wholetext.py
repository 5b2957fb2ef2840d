import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.models import Chunk, whole_text
from storage.reading.chunk import chunk

WORDS = st.sampled_from(
    ["wind", "# Sea", "- rope.", "\n\n", "\n", "Tide! ", "```", "潮", "a" * 700]
)


@given(words=st.lists(WORDS, max_size=200), markdown=st.booleans())
def test_whatever_a_text_is_cut_into_its_words_come_back_in_order_and_once(
    words: list[str], markdown: bool
) -> None:
    text = " ".join(words)
    pieces = [
        Chunk(position, piece.start, piece.heading, piece.content)
        for position, piece in enumerate(chunk(text, markdown=markdown))
    ]
    assert "".join(whole_text(pieces).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([], ""),
        ([(0, "one two"), (4, "two three")], "one two three"),
        ([(0, "one"), (9, "two")], "one\n\ntwo"),
        ([(0, "one"), (4, "two")], "one\ntwo"),
        ([(0, "one two three"), (4, "two")], "one two three"),
        ([(40, "two"), (44, "three")], "two\nthree"),
    ],
)
def test_overlaps_are_left_out_and_gaps_are_an_empty_line_at_most(
    chunks: list[tuple[int, str]], text: str
) -> None:
    made = [Chunk(at, start, "", content) for at, (start, content) in enumerate(chunks)]
    assert whole_text(made) == text
