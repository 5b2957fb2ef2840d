from pathlib import Path

import pytest

from server.cli.data.importer import Outcome, Result, Tally


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("'a/b.md' is empty.", "It is empty"),
        ('"it\'s.md" is empty.', "It is empty"),
        ("'a.md' is too large: it has 9 bytes; a document may have 5.", "It is too large"),
        (
            "'a' cannot be read. The content is binary (20 bytes read), not text.",
            "The content is binary, not text",
        ),
        (
            "'a.pdf' cannot be read. It is encrypted with a password.",
            "It is encrypted with a password",
        ),
        ("'a.json' cannot be read to its end. It is damaged: line 1 (char 2)", "It is damaged"),
        ("'a.docx' cannot be read. It unpacks to 1,000 bytes; at most 5.", "It unpacks to … bytes"),
        ("The name 'a\\udcff' is not valid UTF-8.", "The name is not valid UTF-8"),
        (
            "The system refuses access to 'a.md': Permission denied.",
            "The system refuses access to it",
        ),
        ("The path 'a' is protected (why); tools may not use it.", "The path is protected"),
        ("The conversation 'New chat' has no text.", "The conversation has no text"),
        ("A part of 'a.json' is not a conversation.", "A part of it is not a conversation"),
        ("", ""),
    ],
)
def test_the_cause_is_the_same_for_every_file_of_a_kind(message: str, cause: str) -> None:
    assert Outcome(Path("a"), "a", "skipped", message).cause == cause


def test_the_counts_come_in_one_order_whatever_happened_first() -> None:
    tally = Tally()
    for result in ("skipped", "deleted", "unchanged", "added", "unchanged"):
        tally.note(Outcome(Path("a"), "a", result, "It is empty." * (result == "skipped")))
    tally.passed_over.update(hidden=1200)
    assert list(tally.lines()) == [
        "1 added, 2 unchanged, 1 deleted, 1 skipped",
        "  1 skipped: It is empty.",
        "Passed over: 1,200 hidden",
    ]


def test_of_nothing_nothing_is_said() -> None:
    assert list(Tally().lines()) == []


def test_a_named_file_failed_if_nothing_of_it_is_stored() -> None:
    tally = Tally()
    assert tally.failed(())
    outcomes: list[tuple[str, Result]] = [("a", "added"), ("a", "skipped"), ("b", "skipped")]
    for file, result in outcomes:
        tally.note(Outcome(Path(file), file, result))
    assert [tally.failed([Path(file)]) for file in "abc"] == [False, True, False]
