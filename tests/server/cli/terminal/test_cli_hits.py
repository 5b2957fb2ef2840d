import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from server.cli.terminal.hits import EXCERPT, print_hits
from server.mcp.visible import visible


def hit(**given: Any) -> dict[str, Any]:
    return {
        "context_type": "document",
        "origin": "documents",
        "raw_type": "file",
        "raw_id": "a.md",
        "title": "Title",
        "heading": "",
        "content": "Content.",
        "score": 0.5,
        "dense": 0.25,
        "lexical": 1.5,
        "matched": [],
        **given,
    }


def shown(
    *hits: dict[str, Any],
    width: int = 80,
    color: bool = False,
    answer: dict[str, Any] | None = None,
    question: str = "",
    **coverage: Any,
) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
    )
    status = {"total": 3, "embedded": 3, "problem": "", **coverage}
    print_hits({"hits": hits, "coverage": status, **(answer or {})}, question, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_excerpt_is_where_the_matched_words_stand() -> None:
    content = "filler " * 200 + "the bowline knots hold " + "filler " * 200
    found = hit(content=content, matched=["bowline", "knot"])
    text = shown(found, question="Do bowline knots hold?", width=400)
    excerpt = text.splitlines()[3]
    assert "the bowline knots hold" in excerpt
    assert len(excerpt.strip()) <= EXCERPT


def test_a_matched_word_is_marked_in_every_form_and_never_inside_another() -> None:
    text = shown(hit(content="A knot, Knots; unknotted", matched=["knots"]), color=True)
    assert text.count("\x1b[1;32mknot\x1b[0m") == 1
    assert text.count("\x1b[1;32mKnots\x1b[0m") == 1
    assert "unknotted" in text


def test_pairs_of_a_script_without_spaces_are_marked() -> None:
    text = shown(hit(content="我们学习打绳结的方法", matched=["绳结"]), color=True)
    assert "\x1b[1;32m绳结\x1b[0m" in text


def test_what_is_not_embedded_says_so() -> None:
    unembedded = hit()
    del unembedded["dense"]
    text = shown(unembedded, embedded=1, problem="disk full")
    assert "1 of 3 chunks embedded (disk full)" in text
    assert "dense none" in text
    roughly = shown(hit(), embedded=1, rough=1)
    assert "1 of 3 chunks embedded, 1 more found roughly by meaning; the rest" in roughly


@pytest.mark.parametrize("name", ["[red]a[/red]", "[/]", ":smile:", 'it\'s "b".md'])
def test_a_name_is_shown_as_it_is(name: str) -> None:
    assert name in shown(hit(raw_id=name, title=name, content=name))


@given(st.text(), st.text(), st.lists(st.text(min_size=1), max_size=3), st.integers(20, 120))
def test_whatever_is_stored_does_not_steer_the_terminal(
    name: str, content: str, matched: list[str], width: int
) -> None:
    text = shown(hit(raw_id=name, title=name, content=content, matched=matched), width=width)
    assert [character for character in text if character < " " and character != "\n"] == []


@given(st.text())
def test_a_visible_text_is_one_line_that_can_be_written(text: str) -> None:
    line = visible(text)
    assert len(line.splitlines()) <= 1
    assert line.encode().decode() == line
    assert visible(line) == line


@pytest.mark.parametrize(
    "unseen", ["\u034f", "\u115f", "\u17b4", "\u180b", "\u2800", "\u3164", "\ufe00", "\U000e0100"]
)
def test_what_nothing_is_seen_of_is_marked(unseen: str) -> None:
    assert visible(f"r{unseen}m") == f"r<U+{ord(unseen):04X}>m"


def test_joiners_are_marked_only_where_they_join_nothing() -> None:
    assert visible("r\u200d\u200cm\ufe0f") == "r<U+200D><U+200C>m<U+FE0F>"
    for word in ("\u0646\u200c\u0647", "\U0001f469\u200d\U0001f527", "\u2764\ufe0f"):
        assert visible(word) == word


def test_memories_and_findings_of_a_source_say_where_they_come_from() -> None:
    entry = hit(origin="memory", layer="l1", raw_type="", event_time="2026-11-22T09:30:05.5+00:00")
    text = shown(
        entry,
        hit(origin="memory", layer="l2", raw_type="", raw_id=""),
        hit(origin="manuals"),
        hit(origin="documents"),
    )
    assert [line.strip() for line in text.splitlines()[1::5]] == [
        "memory l1, 2026-11-22 09:30:05 UTC",
        "memory l2",
        "manuals, a.md",
        "a.md",
    ]


def test_what_is_not_plain_of_a_search_is_said_first() -> None:
    everywhere = {"scope": "all", "why": "nothing in the question says where"}
    assert shown(hit(), answer=everywhere).splitlines()[0].strip() == "1  Title"
    told = {"scope": "memory", "why": "as asked", "asked": "tyres and why", "cached": "tyres why"}
    assert shown(hit(), answer=told, width=200).splitlines()[0] == (
        "Looked in memory: as asked. Asked as 'tyres and why'."
        " Unchanged since 'tyres why' was asked."
    )
    assert "Try --scope all" in shown(answer=told)
