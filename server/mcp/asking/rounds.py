"""One round of a call that asks its client something (protocol 2026-07-28).

The server ends the call with an `InputRequiredResult`, and the client makes the same call again
with the answers and the state (https://modelcontextprotocol.io/specification/2026-07-28/basic/mrtr).
What comes back could be changed by the client: it names questions of ours and proves nothing.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

_OURS = re.compile("[0-9a-f]{32}")
"""Keys that our own questions have: those of other servers never look so."""

_MEMBERS = 2
"""Of what another server handed over."""


class Round:
    """What came with a call, and what is asked before it is made again.

    Args:
        params: The call.

    Attributes:
        answers: What the client answered, by the keys of the questions.
        state: What the tool handed over when it asked.
        tickets: The questions to the person that belong to this call.
        suspension: Names what is kept here of earlier rounds; empty where nothing is.
        handed: What other servers handed over when they asked, by the calls that they asked in.

    Raises:
        MCPError: If the state is none that was given out here.
    """

    def __init__(self, params: types.InputResponseRequestParams) -> None:
        said = _parsed(params.request_state or "")
        self.answers = params.input_responses or {}
        self.state = str(said.get("state", ""))
        self.tickets = [each for each in _listed(said.get("tickets")) if isinstance(each, str)]
        self.suspension = _text(said.get("suspension"))
        self.handed = {name: _Handed.of(each) for name, each in _pairs(said.get("upstream"))}
        others = {key: each for key, each in self.answers.items() if not _OURS.fullmatch(key)}
        self._unasked = {} if said else others
        self._requests: dict[str, types.InputRequest] = {}
        self._calls: Counter[str] = Counter()

    def ask(self, key: str, request: types.InputRequest) -> None:
        """Puts a question under a key."""
        self._requests[key] = request

    def ask_apart(self, key: str, request: types.InputRequest) -> str:
        """Puts a question under a key, or under another where that is another's; returns it."""
        if self._requests.get(key, request) is not request:
            key = secrets.token_hex(16)
        self.ask(key, request)
        return key

    def pass_on(
        self, call: str, asked: Mapping[str, types.InputRequest], state: str | None
    ) -> None:
        """Puts what another server asks in a call, under its own keys where they are free."""
        handed = self.handed[call] = _Handed(state, {})
        for key, request in asked.items():
            is_free = key not in self._requests and not _OURS.fullmatch(key)
            shown = key if is_free else f"{call}:{key}"
            handed.keys[shown] = key
            self.ask(shown, request)

    def take(self, call: str) -> tuple[types.InputResponses | None, str | None]:
        """The answers to what another server asked, and what it handed over; of a new call None.

        Answers to nothing that was asked here are for the first call of another server: that would
        have them if the client had called it itself.
        """
        handed = self.handed.pop(call, None)
        if handed is None:
            unasked, self._unasked = self._unasked, {}
            return unasked or None, None
        answers = {
            own: self.answers[shown] for shown, own in handed.keys.items() if shown in self.answers
        }
        return answers or None, handed.state

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
            "suspension": self.suspension,
            "upstream": {name: [each.state, each.keys] for name, each in self.handed.items()},
        }
        state = json.dumps({key: value for key, value in said.items() if value})
        return types.InputRequiredResult(
            input_requests=self._requests, request_state=state if len(state) > len("{}") else None
        )


@dataclass(frozen=True, slots=True)
class _Handed:
    """What another server handed over.

    Attributes:
        state: Its own state.
        keys: Its keys of its questions, by those that the client has.
    """

    state: str | None
    keys: dict[str, str]

    @classmethod
    def of(cls, said: object) -> _Handed:
        state, keys = said if isinstance(said, list) and len(said) == _MEMBERS else (None, {})
        texts = {key: each for key, each in _pairs(keys) if isinstance(each, str)}
        return cls(state if isinstance(state, str) else None, texts)


def _parsed(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text or "{}")
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise MCPError(
            types.INVALID_PARAMS, "The request state is not one that was given out here."
        )
    return said


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _pairs(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, Mapping) else []
