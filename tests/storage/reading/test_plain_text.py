import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.reading.plain_text import is_prose, pieces_of, plain_line


def said(text: str) -> list[str]:
    return [piece.text for piece in pieces_of(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Ask Dr. Miller, e.g. by mail.", "He answers at 3.5 bar.", "Does he?"],
        ["Am 3. Mai kommt z. B. Herr Prof. Schulz.", "Danach kommt niemand mehr zu uns."],
        ["J. S. Bach wrote it.", '"I know!"', "Nobody else does…"],
        ["我们学习打绳结。", "你好\uff01", "再见"],
    ],
)
def test_a_paragraph_is_cut_where_its_sentences_end(sentences: list[str]) -> None:
    between = "" if "。" in sentences[0] else " "
    assert said(between.join(sentences)) == sentences


def test_a_row_has_the_names_of_its_columns() -> None:
    table = "| | bar | note |\n|---|:-:|---|\n| **road** | 6 \\| 8 | |\n| tour | 4 | [a](b) |"
    assert said(table) == ["road; bar: 6 | 8", "tour; bar: 4; note: a"]
    assert said("| a part | of a table |") == ["a part; of a table"]


def test_an_item_is_whole_and_knows_what_leads_to_it() -> None:
    pieces = pieces_of("# Trip\n\nYou need:\n\n- a tent. Not\n  the old one\n1. shoes\n")
    assert [piece.text for piece in pieces] == [
        "You need:",
        "• a tent. Not the old one",
        "1. shoes",
    ]
    assert {piece.heading for piece in pieces} == {"Trip"}
    assert pieces[1].lead == "You need:"


def test_lines_that_stand_for_themselves_are_not_joined_and_wrapped_ones_are() -> None:
    assert said("From: Ann\nTo: Bob") == ["From: Ann", "To: Bob"]
    wrapped = "This is a line of a paragraph that somebody has wrapped by\nhand."
    assert said(wrapped) == [wrapped.replace("\n", " ")]


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("**Bold**, *it* and ~~gone~~", "Bold, it and gone"),
        ("see [the page](http://x.y/(a) 'b') and [[note|that]]", "see the page and that"),
        ("![a cat](cat.png)<br>here", "a cat here"),
        (
            "`a * b * c` of __init__ and snake_case_name",
            "`a * b * c` of __init__ and snake_case_name",
        ),
        ("2 * 3 * 4 is a < b > c", "2 * 3 * 4 is a < b > c"),
        ("R&amp;D \\*kept\\*", "R&D *kept*"),
        ("这是**重点**。", "这是重点。"),
    ],
)
def test_the_signs_of_markdown_go_and_what_is_code_stays(marked: str, plain: str) -> None:
    assert plain_line(marked) == plain


def test_code_keeps_its_lines() -> None:
    code = "def f(x):\n    # **no** mark\n    return x | 2"
    assert said(f"```py\n{code}\n```\nEnd.") == [*code.split("\n"), "End."]
    assert [piece.text for piece in pieces_of(code, prose=False)] == code.split("\n")
    assert [is_prose(name) for name in ("a.py", "a.json", "a.MD", "a.pdf", "")] == [
        *(False, False),
        *(True, True, True),
    ]


@given(st.text(alphabet="ab# *_|`-.!。1[]()<>&\\\n 中", max_size=200))
def test_whatever_is_stored_can_be_read(text: str) -> None:
    for piece in pieces_of(text):
        assert piece.text.strip()
        assert "\n" not in piece.text
