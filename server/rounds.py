"""One round of a call that asks its client something (protocol 2026-07-28).

The server ends the call with an `InputRequiredResult`, and the client makes the same call again
with the answers and the state (https://modelcontextprotocol.io/specification/2026-07-28/basic/mrtr).
What comes back could be changed by the client: it names questions of ours and proves nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

__all__ = ["Round"]


class Round:
    """What came with a call, and what is asked before it is made again.

    Args:
        params: The call.

    Attributes:
        answers: What the client answered, by the keys of the questions.
        state: What the tool handed over when it asked.
        tickets: The questions to the person that belong to this call.
        stay: Names what is kept here of earlier rounds; empty where nothing is.
        upstream: What other servers handed over when they asked, by the calls that they asked in.
        refusal: The error with which the call is answered, where the client acts on it itself.
    """

    def __init__(self, params: types.InputResponseRequestParams) -> None:
        said = _parsed(params.request_state or "")
        self.answers = params.input_responses or {}
        self.state = str(said.get("state", ""))
        self.tickets = [each for each in _listed(said.get("tickets")) if isinstance(each, str)]
        self.stay = _text(said.get("stay"))
        self.upstream = _texts(said.get("upstream"))
        self.refusal: MCPError | None = None
        self._requests: dict[str, types.InputRequest] = {}
        self._calls: Counter[str] = Counter()

    def ask(self, key: str, request: types.InputRequest) -> None:
        """Puts a question under a key."""
        self._requests[key] = request

    def answers_to(self, prefix: str) -> types.InputResponses | None:
        """The answers under keys that begin so, by the rest of their keys; None if none came."""
        found = {
            key.removeprefix(prefix): answer
            for key, answer in self.answers.items()
            if key.startswith(prefix)
        }
        return found or None

    def name_of(self, digest: str) -> str:
        """Names a call within this one; the same in each round that makes the same calls."""
        self._calls[digest] += 1
        return f"{digest}.{self._calls[digest]}"

    @property
    def asks(self) -> bool:
        """Whether anything is asked."""
        return bool(self._requests)

    @property
    def awaited(self) -> types.InputRequiredResult | None:
        """What the client is to answer before it makes the call again; None if nothing."""
        if not self._requests:
            return None
        said = {
            "state": self.state,
            "tickets": self.tickets,
            "stay": self.stay,
            "upstream": self.upstream,
        }
        state = json.dumps({key: value for key, value in said.items() if value})
        return types.InputRequiredResult(
            input_requests=self._requests, request_state=state if len(state) > len("{}") else None
        )


def _parsed(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {key: each for key, each in pairs if isinstance(each, str)}
