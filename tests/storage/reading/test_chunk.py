import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.reading.chunk import TextChunk, chunk, weigh

LINES = st.sampled_from(
    [
        *("# One", "## Two", "### Three ###", "Setext", "===", "---", "```python", "~~~"),
        *("- item one", "  1. inner", "| a | b |"),
        *("A sentence. Another one! A third, longer than the others, is it? Yes.", "word " * 40),
        *("x" * 150, "模型很好。它能运行\uff01真的吗\uff1f是的。", "    code", "", "   "),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(LINES, max_size=40).map("\n".join))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def headings(chunks: list[TextChunk]) -> list[str]:
    return [piece.heading for piece in chunks]


@given(text=TEXTS, markdown=st.booleans(), limit=st.integers(3, 400))
@example(text="# A", markdown=True, limit=3)
@example(text="\n\n  # A\n\n\n## B", markdown=True, limit=100)
@example(text="---\ntitle: x\n---\n# A\ntext", markdown=True, limit=20)
def test_without_overlap_the_pieces_are_the_text(text: str, markdown: bool, limit: int) -> None:
    pieces = chunk(text, markdown=markdown, max_chars=limit, overlap=0)
    assert squeezed("".join(piece.content for piece in pieces)) == squeezed(text)


@given(TEXTS, st.booleans(), st.integers(20, 400), st.integers(0, 19))
def test_pieces_keep_the_limit_and_the_order_and_are_not_blank(
    text: str, markdown: bool, limit: int, overlap: int
) -> None:
    pieces = chunk(text, markdown=markdown, max_chars=limit, overlap=overlap)
    covered = 0
    for piece in pieces:
        assert piece.content.strip()
        assert weigh(piece.content) <= limit
        start = text.find(piece.content, max(0, covered - 2 * limit))
        assert start >= 0
        covered = max(covered, start + len(piece.content))


@given(TEXTS, st.integers(0, 19))
def test_with_overlap_nothing_is_lost(text: str, overlap: int) -> None:
    plain = chunk(text, markdown=True, max_chars=60, overlap=0)
    overlapping = chunk(text, markdown=True, max_chars=60, overlap=overlap)
    kept = squeezed("".join(piece.content for piece in overlapping))
    remaining = iter(kept)
    assert all(char in remaining for char in squeezed("".join(p.content for p in plain)))


def test_sections_carry_their_path_of_headings() -> None:
    body = "Some words of text. " * 10
    text = f"intro {body}\n# A\n{body}\n## B ##\n{body}\n### C\n{body}\n# D\n{body}"
    pieces = chunk(text, markdown=True, max_chars=400)
    assert headings(pieces) == ["", "A", "A > B", "A > B > C", "D"]
    assert pieces[2].content.startswith("## B ##\nSome words")


def test_setext_headings_are_headings() -> None:
    body = "words " * 50
    pieces = chunk(f"Top\n===\n{body}\n\nBelow\n---\n{body}", markdown=True, max_chars=500)
    assert headings(pieces) == ["Top", "Top > Below"]


@pytest.mark.parametrize("fence", ["```", "~~~~", "  ```"])
def test_a_hash_in_a_fence_is_no_heading(fence: str) -> None:
    text = f"# A\n\n{fence}sh\n# not a heading\n\nTitle\n=====\n{fence}\n\n# B\ntext"
    pieces = chunk(text, markdown=True, max_chars=90, overlap=0)
    assert "not a heading" not in "".join(headings(pieces))
    assert any("# not a heading\n\nTitle\n=====" in piece.content for piece in pieces)


def test_front_matter_is_no_heading() -> None:
    body = "words " * 50
    text = f"---\ntitle: Report\ntags: [a]\n---\n# A\n{body}"
    assert headings(chunk(text, markdown=True, max_chars=400)) == ["", "A"]


def test_plain_text_has_no_headings() -> None:
    assert headings(chunk("# not\n\n===\n" + "words " * 400, markdown=False)) == [""] * 2


def test_a_heading_alone_stays_with_what_follows() -> None:
    pieces = chunk("# A\n\n## B\n\n" + "words " * 60 + "\n\n## C", markdown=True, max_chars=500)
    assert headings(pieces) == ["A > B"]
    assert pieces[0].content.startswith("# A\n\n## B")
    assert pieces[0].content.endswith("## C")


def test_a_heading_is_not_parted_from_a_paragraph_that_fills_the_limit() -> None:
    pieces = chunk("# A\n\n" + "One sentence here. " * 25, markdown=True, max_chars=475)
    assert "One sentence" in pieces[0].content


def test_tiny_siblings_are_joined_under_what_they_share() -> None:
    tiny = "".join(f"## Q{n}\n\nShort answer {n}.\n\n" for n in range(6))
    pieces = chunk("# FAQ\n\n" + tiny, markdown=True, max_chars=1000)
    assert headings(pieces) == ["FAQ"]
    assert pieces[0].content.count("## Q") == 6


def test_a_tiny_section_is_not_joined_to_a_large_one() -> None:
    text = "## Small\nOne line.\n## Large\n" + "Many words here. " * 40
    assert headings(chunk(text, markdown=True, max_chars=1000)) == ["Small", "Large"]


@pytest.mark.parametrize(
    "block",
    [
        "```python\ndef f():\n\n    return 1. Or. Not.\n```",
        "| a | b |\n|---|---|\n| 1. A | 2 |\n| 3 | 4 |",
        "- one. First\n\n- two. Second\n\n  more of two",
        "A paragraph. Of three sentences. Kept whole.",
    ],
)
def test_a_block_that_fits_is_kept_whole(block: str) -> None:
    filler = "Filler sentence number one. " * 4
    text = "\n\n".join([filler, block] * 5)
    pieces = chunk(text, markdown=True, max_chars=160, overlap=0)
    assert sum(block in piece.content for piece in pieces) == 5


def test_a_long_paragraph_is_cut_at_sentence_ends() -> None:
    text = "The engine turns, e.g. quickly. Does it stop? It does! " * 30
    pieces = chunk(text, markdown=False, max_chars=200, overlap=0)
    assert len(pieces) > 5
    assert all(piece.content[-1] in ".?!" for piece in pieces)
    assert not any(piece.content.endswith("e.g.") for piece in pieces)


def test_chinese_is_cut_at_its_sentence_ends_and_weighs_three() -> None:
    text = "模型很好。它能运行\uff01真的吗\uff1f" * 50
    pieces = chunk(text, markdown=False, max_chars=150, overlap=0)
    assert all(len(piece.content) <= 50 for piece in pieces)
    assert all(piece.content[-1] in "。\uff01\uff1f" for piece in pieces)


def test_code_is_cut_at_lines() -> None:
    lines = [f"    value_{n} = compute(value_{n - 1}, {n})" for n in range(100)]
    pieces = chunk("\n".join(lines), markdown=False, max_chars=300, overlap=0)
    assert [line for piece in pieces for line in piece.content.split("\n")] == lines


def test_words_are_not_cut_and_a_run_without_spaces_is() -> None:
    words = chunk("word " * 100, markdown=False, max_chars=42, overlap=0)
    assert {piece.content for piece in words[:-1]} == {("word " * 8).strip()}
    assert [len(p.content) for p in chunk("x" * 100, markdown=False, max_chars=42, overlap=0)] == [
        42,
        42,
        16,
    ]


def test_overlap_repeats_whole_sentences_within_a_section_only() -> None:
    sentences = " ".join(f"Sentence number {n} is here." for n in range(40))
    text = f"# A\n\n{sentences}\n\n# B\n\n{sentences}"
    pieces = chunk(text, markdown=True, max_chars=300, overlap=70)
    for before, after in pairwise(pieces):
        if before.heading == after.heading:
            shared = after.content.split(".")[0] + "."
            assert shared.startswith("Sentence number")
            assert shared in before.content
        else:
            assert after.content.startswith("# B\n\nSentence number 0")


@pytest.mark.parametrize("text", ["", " \n\t\n "])
def test_nothing_gives_no_pieces(text: str) -> None:
    assert chunk(text, markdown=True) == []


@pytest.mark.parametrize(
    ("max_chars", "overlap", "message"),
    [
        (2, 0, "max_chars is 2; it must be at least 3."),
        (10, 10, "overlap is 10; it must be from 0 to 9."),
        (10, -1, "overlap is -1; it must be from 0 to 9."),
    ],
)
def test_impossible_limits_are_refused(max_chars: int, overlap: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        chunk("text", markdown=True, max_chars=max_chars, overlap=overlap)


@pytest.mark.parametrize(
    "unit", ["a", ". ", "。", "\n", "# a\n", "```\n", "`a", "a\n=\n", "(.", " "]
)
def test_half_a_megabyte_of_anything_is_cut(unit: str) -> None:
    text = unit * (500_000 // len(unit))
    pieces = chunk(text, markdown=True)
    assert max((weigh(piece.content) for piece in pieces), default=0) <= 1500
