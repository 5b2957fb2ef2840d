"""The person at the client, asked through the protocol.

Until 2025-11-25 the server sends `elicitation/create` in the middle of a call. From 2026-07-28 on
it ends the call and is called again (see `rounds`). Both carry a form with one question
(https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.rounds import Round
from server.mcp.safe_json import utf8_text
from server.mcp.visible import visible, visible_lines
from tools.core.client import AnswersAwaitedError, Approver, Consent, Question

__all__ = ["CallApprover", "RoundApprover", "approver_of", "asking_text"]

ANSWER_SECONDS = 600.0
"""How long a person may think."""

SHOWN_CHARACTERS = 6_000
"""Of what a call would do; of a longer one its beginning and its end."""


def approver_of(request: ClientRequest) -> Approver | None:
    """Returns the way to the person at the client; None if the client cannot ask."""
    ctx = request.ctx
    capabilities = ctx.session.client_capabilities
    offered = None if capabilities is None else capabilities.elicitation
    if offered is None or (offered.form is None and offered.url is not None):
        return None  # an offer without modes means forms (2025-06-18)
    if request.is_modern:
        return RoundApprover(request.this_round)
    return CallApprover(ctx) if ctx.session.can_send_request else None


class CallApprover:
    """Asks in the middle of a call (protocols until 2025-11-25).

    Args:
        ctx: The request that the question belongs to.
    """

    tickets: Sequence[str] = ()

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx

    def keep(self, ticket: str) -> bool:  # noqa: ARG002  # the call goes on
        """The call does not come again."""
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # the call goes on
        """What the person says; NONE where the client fails."""
        try:
            result = await self._ctx.session.send_request(
                _request(question),
                types.ElicitResult,
                request_read_timeout_seconds=ANSWER_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=self._ctx.request_id),
            )
        except (MCPError, ValidationError):
            return Consent.NONE
        return _consent(result)


class RoundApprover:
    """Asks by ending the call, which comes again with the answer (protocol 2026-07-28).

    Args:
        this_round: What came with the call.
    """

    def __init__(self, this_round: Round) -> None:
        self.tickets: Sequence[str] = tuple(this_round.tickets)
        self._round = this_round

    def keep(self, ticket: str) -> bool:
        """Has the call name a ticket if it comes again."""
        if ticket not in self._round.tickets:
            self._round.tickets.append(ticket)
        return True

    async def ask(self, question: Question, ticket: str) -> Consent:
        """The answer that came with the call.

        Raises:
            AnswersAwaitedError: If none came to this question.
        """
        answer = self._round.answers.get(ticket)
        if answer is None:
            self.keep(ticket)
            self._round.ask(ticket, _request(question))
            raise AnswersAwaitedError("The person at the client has to answer first.")
        return _consent(answer)


def asking_text(question: Question) -> str:
    """What a person reads before they answer, with nothing in it that hides or steers."""
    who = visible(question.client) or "An agent"
    shown = visible_lines(question.shown)
    if len(shown) > SHOWN_CHARACTERS:
        half = SHOWN_CHARACTERS // 2
        left_out = len(shown) - 2 * half
        shown = f"{shown[:half]}\n[… {left_out} characters are not shown here …]\n{shown[-half:]}"
    # Indented, so that no line of it passes for one of the question.
    shown = indent(shown, "    ", lambda _line: True)
    return f"{who} wants to call {question.tool}:\n\n{shown}\n\nWhy you are asked: " + visible(
        question.reason
    )


def _request(question: Question) -> types.ElicitRequest:
    choices = {Consent.ONCE: "Allow this call once"}
    if question.grant:
        choices[Consent.FOR_A_WHILE] = f"Allow {visible(question.grant)} for a while"
    choices[Consent.NO] = "Do not allow it"
    answer = {
        "type": "string",
        "title": "Your answer",
        "enum": [str(choice) for choice in choices],
        "enumNames": [utf8_text(text) for text in choices.values()],
    }
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=utf8_text(asking_text(question)),
            requested_schema={
                "type": "object",
                "properties": {"answer": answer},
                "required": ["answer"],
            },
        )
    )


def _consent(answer: types.InputResponse) -> Consent:
    """What an answer says; one that says nothing clear is none."""
    if not isinstance(answer, types.ElicitResult) or answer.action == "cancel":
        return Consent.NONE
    if answer.action == "decline":
        return Consent.NO
    said = (answer.content or {}).get("answer")
    return next((choice for choice in Consent if choice == said), Consent.NONE)
