from dataclasses import replace

import pytest

from storage.models import Turn
from storage.reading.conversations import Conversation, Utterance, identifier, seconds

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
    def name(*candidates: object, time: float | None = None, said: tuple[str, ...] = ()) -> str:
        turns = [Utterance("User", None, text) for text in said]
        return identifier(*candidates, title="t", time=time, turns=turns)

    assert name(None, "", "a") == "a"
    assert name(7) == "7"
    assert name(None, " ", time=1.0) == name({}, time=1.0) != name({}, time=2.0)
    assert name(time=1.0, said=("a", "b")) == name(time=1.0, said=("a",)) != name(time=1.0)


def test_without_name_and_time_only_the_same_words_are_the_same_conversation() -> None:
    def name(*said: str) -> str:
        turns = [Utterance("User", None, text) for text in said]
        return identifier(title="", time=None, turns=turns)

    assert name("hi", "owls") == name("hi", "owls") != name("hi", "foxes")


def test_a_conversation_of_another_title_is_not_the_same_any_more() -> None:
    def digest(title: str) -> str:
        turns = (Utterance("User", 1.0, "hi"),)
        chat = Conversation(source="chat", id="1", title=title, time=None, turns=turns)
        return chat.to_context().sha256

    assert digest("Owls") == digest("Owls") != digest("Foxes")
