"""The texts of records."""

import pytest

from tools.retrieval.models import first_sentence


@pytest.mark.parametrize(
    ("description", "first"),
    [
        ("Reads. Then writes.", "Reads."),
        ("Reads a file.txt of\nour own. Then writes.", "Reads a file.txt of our own."),
        ("Reads", "Reads"),
        ("Reads!\n\nMore.", "Reads!"),
        ("Reads\n\nMore", "Reads"),
        ("読む。書く。", "読む。"),
        ("", ""),
    ],
)
def test_a_sentence_ends_at_a_full_stop_in_any_script_or_at_an_empty_line(
    description: str, first: str
) -> None:
    assert first_sentence(description) == first
