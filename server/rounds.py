"""One round of a call that asks its client something (protocol 2026-07-28).

The server ends the call with an `InputRequiredResult`, and the client makes the same call again
with the answers and the state (https://modelcontextprotocol.io/specification/2026-07-28/basic/mrtr).
What comes back could be changed by the client: it names questions of ours and proves nothing.
"""

from __future__ import annotations

import json

import mcp_types as types

__all__ = ["Round"]


class Round:
    """What came with a call, and what is asked before it is made again.

    Args:
        params: The call.

    Attributes:
        answers: What the client answered, by the keys of the questions.
        state: What the tool handed over when it asked.
        tickets: The questions to the person that belong to this call.
    """

    def __init__(self, params: types.CallToolRequestParams) -> None:
        self.answers = params.input_responses or {}
        self.state, self.tickets = _parse(params.request_state or "")
        self._requests: dict[str, types.InputRequest] = {}

    def ask(self, key: str, request: types.InputRequest) -> None:
        """Puts a question under a key."""
        self._requests[key] = request

    @property
    def awaited(self) -> types.InputRequiredResult | None:
        """What the client is to answer before it makes the call again; None if nothing."""
        if not self._requests:
            return None
        said = {"state": self.state, "tickets": self.tickets}
        state = json.dumps(said) if self.state or self.tickets else None
        return types.InputRequiredResult(input_requests=self._requests, request_state=state)


def _parse(text: str) -> tuple[str, list[str]]:
    try:
        said = json.loads(text or "{}")
        state, tickets = said.get("state", ""), said.get("tickets", [])
    except (ValueError, AttributeError, RecursionError):
        return "", []
    wanted = tickets if isinstance(tickets, list) else []
    return str(state), [ticket for ticket in wanted if isinstance(ticket, str)]
