import pytest

from storage.database import Database
from storage.memory.captured import CONVERSATION, Captured, ClientSession, last_fired
from storage.models import Identity

ANN, BOB = Identity("ann"), Identity("bob")
SESSION = ClientSession("s", "codex", "/work/shop")


def turns(database: Database) -> list[tuple[str, str]]:
    rows = database.rows(
        "SELECT c.heading, c.content FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
        " WHERE x.raw_type = ? ORDER BY x.seq, c.position",
        (CONVERSATION,),
    )
    return [(row["heading"].partition(",")[0], row["content"]) for row in rows]


def test_a_prompt_waits_for_its_answer(database: Database) -> None:
    captured = Captured(database, ANN)
    assert captured.hear_prompt(SESSION, "Say hello.")
    assert turns(database) == []
    assert captured.hear_answer(SESSION, "Hello.")
    assert turns(database) == [("User", "Say hello."), ("codex", "Hello.")]


def test_prompts_without_an_answer_belong_to_the_next_one(database: Database) -> None:
    captured = Captured(database, ANN)
    for prompt in ("Say hello.", "In French."):
        captured.hear_prompt(SESSION, prompt)
    captured.hear_answer(SESSION, "Bonjour.")
    said = [("User", "Say hello."), ("User", "In French."), ("codex", "Bonjour.")]
    assert turns(database) == said


def test_a_later_turn_is_added_behind_the_earlier_ones(database: Database) -> None:
    captured = Captured(database, ANN)
    captured.hear_answer(SESSION, "One.")
    captured.hear_answer(SESSION, f"Two. {'long ' * 1000}")
    captured.hear_answer(SESSION, "Three.")
    rows = database.rows("SELECT position, start, length(content) AS size FROM chunks")
    assert [row["position"] for row in rows] == list(range(len(rows)))
    assert len(rows) > 3
    starts = [row["start"] for row in rows]
    assert starts == sorted(set(starts))
    assert database.rows("SELECT count(*) FROM contexts")[0][0] == 1


@pytest.mark.parametrize(
    ("again", "stored"), [("Hello.", False), ("Hello again.", True), ("", False)]
)
def test_an_answer_without_a_prompt_is_stored_unless_it_is_the_same(
    database: Database, again: str, stored: bool
) -> None:
    captured = Captured(database, ANN)
    captured.hear_prompt(SESSION, "Say hello.")
    captured.hear_answer(SESSION, "Hello.")
    assert captured.hear_answer(SESSION, again) is stored


def test_sessions_of_two_users_with_one_id_are_two(database: Database) -> None:
    for identity in (ANN, BOB):
        captured = Captured(database, identity)
        assert captured.hear_prompt(SESSION, "Say hello.")
        assert captured.hear_answer(SESSION, "Hello.")
    assert len(turns(database)) == 4
    assert database.rows("SELECT count(DISTINCT user_id) FROM contexts")[0][0] == 2


def test_what_a_session_was_shown_is_stored_with_it(database: Database) -> None:
    captured = Captured(database, ANN)
    captured.note_briefing(SESSION, "We use tabs.", {"digest": 0})
    assert captured.shown_lines("s")[0] == {"digest"}
    assert captured.shown_lines("other") == (set(), [])
    assert Captured(database, BOB).shown_lines("s") == (set(), [])


def test_the_last_hook_of_each_client_is_known(database: Database) -> None:
    captured = Captured(database, ANN)
    assert last_fired(database) == {}
    for event in ("SessionStart", "Stop"):
        captured.note_fired("codex", event)
    captured.note_fired("cursor", "stop")
    assert {client: event for client, (event, _) in last_fired(database).items()} == {
        "codex": "Stop",
        "cursor": "stop",
    }
