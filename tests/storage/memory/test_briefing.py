from collections.abc import Callable, Sequence

import pytest

from storage.database import Database
from storage.memory.briefing import CHARACTERS, Briefing, format_briefing
from storage.memory.captured import Captured, ClientSession
from storage.memory.entries import Entries
from storage.models import Identity, NewEntry

ANN = Identity("ann")
PROJECT = "/work/shop"
DAY = 86_400.0
Hear = Callable[..., None]
NOW = 1_795_000_000.0


@pytest.fixture
def hear(database: Database, monkeypatch: pytest.MonkeyPatch) -> Hear:
    """Stores what a user said some days ago, each time in a session of its own."""

    def store(days: float, *said: str, project: str = PROJECT) -> None:
        for text in said:
            monkeypatch.setattr("time.time", lambda: NOW - days * DAY)
            session = ClientSession(f"{project}-{days}-{text}", "codex", project)
            captured = Captured(database, ANN)
            captured.hear_prompt(session, text)
            captured.hear_answer(session, "All right.")
        monkeypatch.setattr("time.time", lambda: NOW)

    return store


def brief(database: Database, known: Sequence[str] = ()) -> str:
    return format_briefing(Briefing(database, ANN, PROJECT).lines(known), PROJECT)


@pytest.mark.parametrize(
    ("older", "newer", "gone"),
    [
        ("We will use RabbitMQ as the job queue.", "We switch to NATS as the job queue.", True),
        ("The port is 80 from now on.", "The port is 8080 from now on.", False),
        ("Always run make lint.", "Never edit the vendored files.", False),
        ("We decided to use tabs in Go.", "We decided to use spaces in Python.", False),
        ("TODO: fix the invoice rounding.", "The invoice rounding is fixed.", True),
        ("TODO: fix the invoice rounding.", "The login page is fixed.", False),
    ],
)
def test_only_what_is_about_the_same_is_replaced(
    database: Database, hear: Hear, older: str, newer: str, gone: bool
) -> None:
    hear(4, older)
    hear(2, newer)
    for days in (1.5, 1, 0.5):  # what the last sessions did is history, which stays
        hear(days, "Explain this.")
    assert (older not in brief(database)) is gone


def test_a_decision_of_long_ago_is_found_below_thousands_of_turns(
    database: Database, hear: Hear
) -> None:
    hear(300, "We decided to store all amounts as integer cents.")
    hear(3, *(f"Look at the file number {number}." for number in range(200)))
    assert "integer cents" in brief(database)


def test_it_never_exceeds_its_budget_and_keeps_each_section(database: Database, hear: Hear) -> None:
    for number in range(40):
        topic = f"module{number} component{number} {'detail ' * 12}"
        hear(number, f"We decided to freeze {topic}.", f"TODO: thaw {topic}.")
    hear(1, "I use the Neo keyboard layout.")
    text = brief(database)
    assert CHARACTERS * 0.8 < len(text) <= CHARACTERS
    for section in ("About the user", "Decisions and rules", "Open", "Last sessions"):
        assert f"{section}:" in text


@pytest.mark.parametrize("text", ["Should we always use tabs?", "```\nalways = True\n```"])
def test_questions_and_code_decide_nothing(database: Database, hear: Hear, text: str) -> None:
    hear(1, text)
    assert "Decisions" not in brief(database)


def test_known_lines_are_left_out(database: Database, hear: Hear) -> None:
    hear(1, "We decided to use tabs.")
    lines = Briefing(database, ANN, PROJECT).lines()
    assert brief(database, [line.digest for line in lines]) == ""


def test_another_user_is_shown_nothing(database: Database, hear: Hear) -> None:
    hear(1, "We decided to use tabs.")
    assert Briefing(database, Identity("bob"), PROJECT).lines() == []


def test_a_session_that_only_called_tools_has_no_line(database: Database) -> None:
    entry = NewEntry(session_id="s", kind="call", time=1.0, action="read_file", project=PROJECT)
    Entries(database).record(ANN, entry)
    assert Briefing(database, ANN, PROJECT).lines() == []
