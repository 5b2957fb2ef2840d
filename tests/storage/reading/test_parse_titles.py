"""A title that a program put there by itself is none."""

from __future__ import annotations

import pytest

from storage.reading.parse import own_title


@pytest.mark.parametrize(
    "given",
    [
        "",
        "  ",
        "untitled",
        "(anonymous)",
        "Untitled-2",
        "Untitled Document",
        "Document1",
        "Microsoft Word - Document12",
        "Microsoft Word - minutes_final_v3.docx",
        "PowerPoint Presentation",
        "report.dvi",
        "C:\\Users\\ann\\letter.doc",
        "file:///tmp/x",
        "LaTeX document",
        "Title of the Paper",
        "New Page 1",
        "Dokument 3",
        "Document sans titre",
        "无标题文档",
        "---",
    ],
)
def test_the_default_of_a_generator_is_no_title(given: str) -> None:
    assert own_title(given) == ""


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("Minutes of the  harbour board", "Minutes of the harbour board"),
        ("Microsoft Word - Minutes of the board", "Minutes of the board"),
        ("1984", "1984"),
        ("Untitled: a history of anonymous art", "Untitled: a history of anonymous art"),
        ("Document retrieval", "Document retrieval"),
        ("Node.js in practice", "Node.js in practice"),
        ("Main currents of thought", "Main currents of thought"),
    ],
)
def test_what_somebody_wrote_is_kept(given: str, title: str) -> None:
    assert own_title(given) == title
