"""One round of a call that asks its client something (protocol 2026-07-28).

The server ends the call with an `InputRequiredResult`, and the client repeats the call with the
answers and the state (https://modelcontextprotocol.io/specification/2026-07-28/basic/mrtr). The
client could alter the returned state: it identifies our questions and proves nothing.
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
"""Keys of our own questions; those of other servers never match."""

_MEMBERS = 2
"""Number of values in another server's entry."""


class Round:
    """A call's answers, and the questions to ask before its retry."""

    def __init__(self, params: types.InputResponseRequestParams) -> None:
        said = _parse(params.request_state or "")
        self.answers = params.input_responses or {}
        self.state = str(said.get("state", ""))  # the tool's state from the earlier round
        # The tickets of approvals of this call.
        self.tickets = [each for each in _list_in(said.get("tickets")) if isinstance(each, str)]
        # The name of the suspended state; empty if there is none.
        self.suspension = _text_in(said.get("suspension"))
        # Other servers' state from the earlier round, by their calls.
        self.handed = {name: _Handed.of(each) for name, each in _pairs_in(said.get("upstream"))}
        others = {key: each for key, each in self.answers.items() if not _OURS.fullmatch(key)}
        self._unasked = {} if said else others
        self._requests: dict[str, types.InputRequest] = {}
        self._calls: Counter[str] = Counter()

    def ask(self, key: str, request: types.InputRequest) -> None:
        """Adds a question under a key."""
        self._requests[key] = request

    def ask_apart(self, key: str, request: types.InputRequest) -> str:
        """Adds a question under a key, or under a new one if it is in use; returns the key."""
        if self._requests.get(key, request) is not request:
            key = secrets.token_hex(16)
        self.ask(key, request)
        return key

    def pass_on(
        self, call: str, asked: Mapping[str, types.InputRequest], state: str | None
    ) -> None:
        """Adds another server's questions in a call, under their own keys where available."""
        handed = self.handed[call] = _Handed(state, {})
        for key, request in asked.items():
            is_free = key not in self._requests and not _OURS.fullmatch(key)
            shown = key if is_free else f"{call}:{key}"
            handed.keys[shown] = key
            self.ask(shown, request)

    def take(self, call: str) -> tuple[types.InputResponses | None, str | None]:
        """Returns the answers to another server's questions and its state; None for a new call.

        Answers to unknown questions go to the first call of another server, which would have
        received them from a direct client.
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
        """Names a call within this one; the same in each round with the same calls."""
        self._calls[digest] += 1
        return f"{digest}.{self._calls[digest]}"

    @property
    def asks(self) -> bool:
        """Whether there are questions."""
        return bool(self._requests)

    @property
    def awaited(self) -> types.InputRequiredResult | None:
        """The questions to answer before the retry; None if there are none."""
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
    """Another server's state."""

    state: str | None
    keys: dict[str, str]

    @classmethod
    def of(cls, said: object) -> _Handed:
        state, keys = said if isinstance(said, list) and len(said) == _MEMBERS else (None, {})
        texts = {key: each for key, each in _pairs_in(keys) if isinstance(each, str)}
        return cls(state if isinstance(state, str) else None, texts)


def _parse(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text or "{}")
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise MCPError(types.INVALID_PARAMS, "The request state was not issued by this server.")
    return said


def _list_in(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text_in(value: object) -> str:
    return value if isinstance(value, str) else ""


def _pairs_in(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, Mapping) else []
