from __future__ import annotations

from dataclasses import replace

import pytest

from storage.chats.conversation import Conversation, Utterance, identifier, seconds
from storage.models import Turn

MOMENT = 1_773_500_966.0
TALK = Conversation(
    source="claude",
    id="c-1",
    title="Bread",
    time=None,
    turns=(Utterance("Ada", MOMENT, "Why rye?"), Utterance("Claude", None, "It keeps.")),
    metadata={"model": "m"},
)


def test_a_conversation_becomes_a_document_of_its_turns() -> None:
    context = TALK.to_context()
    assert (context.raw_type, context.raw_id, context.title) == ("claude", "c-1", "Bread")
    assert context.turns == (
        Turn("Ada, 2026-03-14T15:09:26Z", "Why rye?"),
        Turn("Claude", "It keeps."),
    )
    assert context.event_time == MOMENT
    assert context.metadata == {"model": "m"}


def test_it_is_the_same_until_something_is_said() -> None:
    digest = TALK.to_context().sha256
    assert replace(TALK).to_context().sha256 == digest
    assert replace(TALK, turns=TALK.turns[:1]).to_context().sha256 != digest


def test_without_a_title_it_is_called_by_its_first_words() -> None:
    long = Utterance(
        "Ada", None, "Why does\nrye bread keep so much longer than any other bread does?"
    )
    context = replace(TALK, title="", turns=(long,)).to_context()
    assert context.title == "Why does rye bread keep so much longer than any other …"
    assert replace(TALK, title="", turns=()).to_context().title == "Conversation"


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (MOMENT, MOMENT),
        (1_773_500_966_000, MOMENT),
        ("2026-03-14T15:09:26Z", MOMENT),
        ("2026-03-14T17:09:26+02:00", MOMENT),
        ("2026-03-14 15:09:26", MOMENT),
        ("yesterday", None),
        (None, None),
        (True, None),
        (0, None),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("0001-01-01", None),
        ([], None),
    ],
)
def test_times_are_read_however_they_are_written(value: object, moment: float | None) -> None:
    assert seconds(value) == moment


def test_what_has_no_name_gets_one_that_stays() -> None:
    assert identifier(None, "", "a", title="t", time=None) == "a"
    assert identifier(7, title="t", time=None) == "7"
    made = identifier(None, " ", title="t", time=1.0)
    assert made == identifier({}, title="t", time=1.0) != identifier({}, title="t", time=2.0)
