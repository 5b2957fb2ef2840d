"""Clients: a person who answers what they are asked, single rounds of a call, and texts read."""

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp import Client

Round = types.CallToolResult | types.InputRequiredResult
YES = types.ElicitResult(action="accept", content={"answer": True})


class Person:
    """Answers in turn, the last answer again and again, and remembers what they were asked."""

    def __init__(self, *answers: Any, action: Any = "accept") -> None:
        self.answers = list(answers or ["once"])
        self.action = action
        self.asked: list[types.ElicitRequestFormParams] = []
        self.before: Callable[[], object] = str

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:  # noqa: ARG002  # the protocol has it
        self.asked.append(params)
        self.before()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if self.action != "accept" or answer == "cancel":
            return types.ElicitResult(action="cancel" if answer == "cancel" else self.action)
        content = {"answer": answer} if isinstance(answer, str | int) else answer or {}
        return types.ElicitResult(action="accept", content=content)


async def never(_context: Any, _params: Any) -> types.ElicitResult:
    raise AssertionError("The tests answer themselves.")


async def round_of(client: Client, name: str, arguments: Any = None, **more: Any) -> Round:
    """One round of a call as the client's session makes it, without the client's own loop."""
    result = await client.session.call_tool(
        name, arguments or {}, allow_input_required=True, **more
    )
    assert isinstance(result, Round)
    return result


def answered(result: Round, answer: Any = YES) -> dict[str, Any]:
    """The same call with answers to all that it asked."""
    assert isinstance(result, types.InputRequiredResult), result
    assert result.input_requests
    return {
        "input_responses": dict.fromkeys(result.input_requests, answer),
        "request_state": result.request_state,
    }


async def text_at(client: Client, uri: str) -> str:
    """The one text that a client reads at an address."""
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    return contents.text
