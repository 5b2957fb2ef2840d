import json
from pathlib import Path

import pytest

from storage.contexts.superseding import statement_of

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "statements.jsonl")
    .read_text("utf-8")
    .splitlines()
]


def _replaces(later: str, earlier: str) -> bool:
    said, before = statement_of(later), statement_of(earlier)
    return said is not None and before is not None and said.is_named and said.replaces(before)


def test_nothing_replaces_what_holds_beside_it() -> None:
    beside = [pair for pair in PAIRS if not pair["replaces"]]
    assert len(beside) > 100
    assert [pair for pair in beside if _replaces(pair["later"], pair["earlier"])] == []
    assert [pair for pair in beside if _replaces(pair["earlier"], pair["later"])] == []


def test_most_new_values_of_measures_and_dates_replace_the_old_ones() -> None:
    new = [pair for pair in PAIRS if pair["replaces"]]
    understood = [pair for pair in new if _replaces(pair["later"], pair["earlier"])]
    assert len(understood) >= 40  # of 68: not of names, nor of "the flat"


@pytest.mark.parametrize(
    "text",
    [
        "Acme's API limit is 200. It was 100.",
        "Is the API limit of Acme 200?",
        "The API limit of Acme is not 200.",
        "The API limit of Acme is 200, they say.",
        "The API limit of Acme is probably 200.",
        "The API limit of Acme was 200.",
        "The API limit of it is 200.",
        "",
        f"The API limit of Acme is {'9' * 200}.",
    ],
)
def test_what_says_more_or_less_is_no_statement(text: str) -> None:
    assert statement_of(text) is None


def test_a_statement_is_the_same_either_way_round() -> None:
    one, other = (
        statement_of("The API limit of Acme is 100."),
        statement_of("Acme's API-limit is 9"),
    )
    assert one is not None
    assert other is not None
    assert (one.subject, one.attribute) == (other.subject, other.attribute) == ("acme", "api limit")
