from collections.abc import Callable

import pytest

from storage.database import Database
from storage.memory.captured import Captured, ClientSession
from storage.memory.recall import LEAST_AGAIN, recall
from storage.models import Identity

ANN = Identity("ann")
PROJECT = "/work/shop"
NOW = 1_795_000_000.0
Hear = Callable[..., None]


@pytest.fixture
def hear(database: Database) -> Hear:
    """Stores the turns of a session, some days ago."""

    def store(days: float, *turns: tuple[str, str], project: str = PROJECT) -> None:
        captured = Captured(database, ANN)
        session = ClientSession(f"{project} {days}", "codex", project)
        for place, (prompt, answer) in enumerate(turns):
            at = NOW - days * 86_400 + place
            captured.hear_prompt(session, prompt, at)
            captured.hear_answer(session, answer, at)

    return store


def told(database: Database, prompt: str, **options: object) -> list[str]:
    return [line.text for line in recall(database, ANN, PROJECT, prompt, **options)]  # type: ignore[arg-type]  # of any kind


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Retries happen in the worker.", "where do we retry?"),
        ("Wir betreiben eine Fußbodenheizung.", "welche heizung haben wir?"),
        ("Los pagos van por Redsys.", "¿qué pago usamos?"),
        ("测试环境在 10.20.3.7。", "测试环境的地址"),
        ("The table is 0042_customers.", "what is in 0042?"),
    ],
)
def test_words_are_found_in_other_forms_and_languages(
    database: Database, hear: Hear, said: str, asked: str
) -> None:
    hear(2, ("Say hello.", "Hello."))
    hear(1, (said, "All right."))
    assert told(database, asked) == [f"{said} → All right."]


def test_a_reply_to_a_question_is_found_by_the_question(database: Database, hear: Hear) -> None:
    hear(1, ("Check whether staging is up.", "Which host is it?"), ("gpu-07 on 8443", "It is up."))
    assert "gpu-07 on 8443 → It is up." in told(database, "where is staging?")


def test_the_end_of_a_search_for_a_cause_is_found_by_its_beginning(
    database: Database, hear: Hear
) -> None:
    hear(
        1,
        ("The emojis are garbled.", "I suspect the encoder."),
        ("and?", "It is not the encoder."),
        ("so why", "The connection used utf8 instead of utf8mb4."),
        ("Update the lock file.", "Updated 14 packages."),
    )
    found = told(database, "what garbled the emojis?")
    assert any("utf8mb4" in each for each in found)
    assert not any("14 packages" in each for each in found)


def test_a_newer_session_about_the_same_replaces_an_older_one(
    database: Database, hear: Hear
) -> None:
    hear(9, ("use prettier for formatting", "Set up Prettier in the pre-commit hook."))
    hear(2, ("swap prettier for biome", "Replaced Prettier by Biome in the pre-commit hook."))
    found = told(database, "which formatter do we use for formatting?")
    assert any("biome" in each for each in found)
    assert not any("use prettier" in each for each in found)


def test_what_the_session_knows_already_is_left_out(database: Database, hear: Hear) -> None:
    hear(1, ("We deploy with Nomad.", "The job file is in ops."))
    assert told(database, "how do we deploy?", known="- We deploy with Nomad.") == [
        "The job file is in ops."
    ]


def test_a_session_that_was_shown_something_needs_a_better_match(
    database: Database, hear: Hear
) -> None:
    hear(1, ("We deploy with Nomad.", "All right."))
    prompt = "the deploy of the frontend"
    assert told(database, prompt) != []
    assert told(database, prompt, least=LEAST_AGAIN) == []
    assert told(database, "how do we deploy?", least=LEAST_AGAIN) != []


def test_it_stays_below_its_budget(database: Database, hear: Hear) -> None:
    for number in range(20):
        detail = " ".join(f"detail{number}-{place}" for place in range(40))
        hear(number, (f"Deploy thing{number} and {detail}.", f"Deployed {detail}."))
    lines = recall(database, ANN, PROJECT, "how do we deploy?")
    assert len(lines) > 1
    assert sum(len(line.text) for line in lines) <= 900


def test_another_user_is_told_nothing(database: Database, hear: Hear) -> None:
    hear(1, ("We deploy with Nomad.", "All right."))
    assert recall(database, Identity("bob"), PROJECT, "how do we deploy?") == []
