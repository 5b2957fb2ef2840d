"""What another server asks, as it is shown."""

import anyio
import mcp_types as types
import pytest

from server.upstream.calling.questions import UnshowableError, present
from tools.core.calling.call import PausableDeadline


def url(address: str) -> types.ElicitRequest:
    return types.ElicitRequest(
        params=types.ElicitRequestURLParams(message="m", url=address, elicitation_id="1")
    )


@pytest.mark.parametrize(
    "address",
    [
        *("javascript:alert(1)", "file:///etc/passwd", "https://", "https://exam\u200bple.com"),
        *("https://example.com/\u202egpj", "https://example.com/\n", "https://p\u0430ypal.com"),
    ],
)
def test_a_person_is_sent_to_nothing_but_addresses_that_can_be_read(address: str) -> None:
    with pytest.raises(UnshowableError, match="not the address"):
        present("toy", url(address))


def test_two_servers_may_use_the_same_id_of_a_question() -> None:
    ids = {
        shown.params.elicitation_id
        for server in ("a", "b")
        if isinstance(shown := present(server, url("https://example.com")), types.ElicitRequest)
        and isinstance(shown.params, types.ElicitRequestURLParams)
    }
    assert ids == {"a:1", "b:1"}


def test_what_is_answered_stays_and_what_only_tells_is_made_visible() -> None:
    schema = {
        "type": "object",
        "properties": {
            "title": {
                "type": "string",
                "title": "A\u200b",
                "enum": ["a\u200b", "b"],
                "enumNames": ["A\u202e", "B"],
                "default": "a\u200b",
            }
        },
    }
    asked = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="m", requested_schema=schema)
    )
    shown = present("toy", asked)
    assert isinstance(shown, types.ElicitRequest)
    assert isinstance(shown.params, types.ElicitRequestFormParams)
    told = shown.params.requested_schema["properties"]["title"]
    assert told["title"] == "A<U+200B>"
    assert told["enumNames"] == ["A<U+202E>", "B"]
    assert (told["enum"], told["default"]) == (["a\u200b", "b"], "a\u200b")


async def test_time_stands_still_until_the_last_open_question_is_answered() -> None:
    deadline = PausableDeadline(60)
    until = deadline.scope.deadline
    with deadline.paused():
        with deadline.paused():
            assert deadline.scope.deadline == float("inf")
        assert deadline.scope.deadline == float("inf")
    assert until <= deadline.scope.deadline <= anyio.current_time() + 60
