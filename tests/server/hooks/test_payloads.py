from pathlib import Path
from typing import Any

import pytest

from server.hooks.payloads import CLIENTS, Moment, read_call


@pytest.mark.parametrize(
    ("client", "event", "payload", "problem"),
    [
        ("emacs", "Stop", {}, "unknown client 'emacs'; known are claude-code"),
        ("codex", "stop", {}, "codex has no event 'stop' here; known are SessionStart"),
        ("codex", "Stop", [], "the payload is list, not a JSON object"),
        ("codex", "Stop", {"session_id": 7}, "the payload names no session (session_id)"),
    ],
)
def test_a_payload_that_cannot_be_read_says_why(
    client: str, event: str, payload: object, problem: str
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        read_call(client, event, payload, Path("/"))
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("client", "event", "payload", "text", "directory"),
    [
        (
            "claude-code",
            "Stop",
            {"session_id": "s", "cwd": "/w", "last_assistant_message": "Hi.\x00"},
            "Hi.",
            "/w",
        ),
        (
            "cursor",
            "beforeSubmitPrompt",
            {"conversation_id": "s", "workspace_roots": ["/w", "/v"], "prompt": "Go."},
            "Go.",
            "/w",
        ),
        ("cursor", "sessionStart", {"session_id": "s", "workspace_roots": []}, "", "/here"),
        ("copilot", "userPromptSubmitted", {"sessionId": "s", "prompt": "Go."}, "Go.", "/here"),
        ("gemini", "AfterAgent", {"session_id": "s", "prompt_response": 7}, "", "/here"),
    ],
)
def test_each_client_names_its_fields(
    client: str, event: str, payload: dict[str, Any], text: str, directory: str
) -> None:
    call = read_call(client, event, payload, Path("/here"))
    assert (call.session, call.text, str(call.directory)) == ("s", text, directory)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_tells_of_starts_prompts_and_answers(client: str) -> None:
    known = CLIENTS[client]
    moments = {event.moment for event in known.events.values()}
    assert {Moment.START, Moment.PROMPT, Moment.ANSWER} <= moments
    assert bool(known.context) is not bool(known.rules)  # one way to show what is stored
