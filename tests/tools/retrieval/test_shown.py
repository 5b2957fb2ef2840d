from __future__ import annotations

import pytest

from storage.models import Identity
from tools.retrieval.shown import SEARCHES, Shown

ANN = Identity("ann")
BOB = Identity("bob")
ASKED = "post the weekly figures to the team"


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_a_called_tool_answers_the_latest_question_that_showed_it(shown: Shown) -> None:
    shown.note(ANN, "s", "older", ["chat", "mail"])
    shown.note(ANN, "s", "newer", ["chat", "wiki"])
    assert shown.question_for(ANN, "s", "chat") == "newer"
    assert shown.question_for(ANN, "s", "mail") == "older"
    assert shown.question_for(ANN, "s", "fax") is None


def test_one_search_counts_for_one_use_of_a_tool(shown: Shown) -> None:
    shown.note(ANN, "s", ASKED, ["chat"])
    assert shown.question_for(ANN, "s", "chat") == ASKED
    assert shown.question_for(ANN, "s", "chat") is None
    shown.note(ANN, "s", ASKED, ["chat"])
    assert shown.question_for(ANN, "s", "chat") == ASKED


@pytest.mark.parametrize(("identity", "session"), [(BOB, "s"), (ANN, "t"), (ANN, "")])
def test_only_the_session_that_asked_teaches(
    shown: Shown, identity: Identity, session: str
) -> None:
    shown.note(ANN, "s", ASKED, ["chat"])
    assert shown.question_for(identity, session, "chat") is None


def test_calls_without_a_session_teach_nothing(shown: Shown) -> None:
    shown.note(ANN, "", ASKED, ["chat"])
    assert shown.question_for(ANN, "", "chat") is None


def test_a_search_of_long_ago_teaches_nothing(shown: Shown) -> None:
    shown.note(ANN, "s", ASKED, ["chat"])
    for at in range(SEARCHES):
        shown.note(ANN, "s", f"search {at}", [])
    assert shown.question_for(ANN, "s", "chat") is None


def test_what_is_remembered_of_a_question_is_short_and_holds_no_secret(shown: Shown) -> None:
    shown.note(ANN, "s", "log in with password=hunter2 \n and " + "go on " * 100, ["chat"])
    question = shown.question_for(ANN, "s", "chat")
    assert question is not None
    assert question.startswith("log in with password=[redacted] and go on")
    assert len(question) <= 300
