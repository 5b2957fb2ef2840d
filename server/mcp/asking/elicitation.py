"""Asks the user of the client for approval, by a form with one question.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

import mcp_types as types

from server.mcp.asking.channels import ANSWER_SECONDS
from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.function_run import FunctionRun, round_of
from server.mcp.visible import visible, visible_lines
from tools.core.client import AnswersAwaitedError, Consent, Question
from tools.core.invisible import encodable

SHOWN_CHARACTERS = 6_000
"""Maximum length of a shown call; longer ones are cut in the middle unless required in full."""


class ClientApprover:
    """Asks the user of the calling client."""

    def __init__(self, request: ClientRequest | FunctionRun) -> None:
        self._request = request
        self._round = round_of(request)
        self.tickets: Sequence[str] = () if self._round is None else tuple(self._round.tickets)

    def keep(self, ticket: str) -> bool:
        """Keeps a ticket for the retry; returns whether the call can be retried."""
        if self._round is not None and ticket not in self._round.tickets:
            self._round.tickets.append(ticket)
        return self._round is not None

    async def ask(self, question: Question, ticket: str) -> Consent:
        """Returns the user's answer; NONE if the client fails."""
        try:
            answers = await self._request.ask({ticket: _form(question)}, seconds=ANSWER_SECONDS)
        except AnswersAwaitedError:
            self.keep(ticket)
            raise
        return _consent(answers[ticket])


def asking_text(question: Question) -> str:
    """Returns the text of a question, with invisible characters marked."""
    who = visible(question.client) or "An agent"
    shown = visible_lines(question.shown)
    if len(shown) > SHOWN_CHARACTERS and not question.is_read_whole:
        half = SHOWN_CHARACTERS // 2
        left_out = len(shown) - 2 * half
        shown = f"{shown[:half]}\n[… {left_out} characters are not shown here …]\n{shown[-half:]}"
    # Indented, so that no line of the call passes for one of the question.
    shown = indent(shown, "    ", lambda _line: True)
    # Some clients show only a line or two.
    program = question.program
    if program is None:
        return f"{visible(question.reason)}\n{who} wants to call {question.tool}:\n{shown}"
    more = f" ({program.more} more calls may follow)" if program.more else ""
    wants = f"{visible(program.name)} wants to call {question.tool}{more}:"
    return f"{wants}\n{shown}\n{visible(question.reason)} The program belongs to {who}."


def choices_of(question: Question) -> dict[Consent, str]:
    """Returns the possible answers with their labels."""
    choices = {Consent.ONCE: "Allow this call once"}
    if question.grant:
        choices[Consent.FOR_A_WHILE] = f"Allow {visible(question.grant)} for a while"
    program = question.program
    if program is not None and program.more:
        most = f"in this run, {program.more} more times at most"
        if program.same:
            choices[Consent.FOR_PROGRAM] = f"Allow {visible(program.same)} {most}"
        if program.whole:
            choices[Consent.FOR_PROGRAM_WIDER] = f"Allow any {program.whole} {most}"
    for choice, offer in zip((Consent.ALWAYS, Consent.ALWAYS_WIDER), question.offers, strict=False):
        choices[choice] = f"Always allow {visible(' and '.join(offer))}"
    choices[Consent.NO] = "Do not allow it"
    if program is not None:
        choices[Consent.NO_MORE] = f"Allow no {question.tool} in this run"
    return choices


def _form(question: Question) -> types.ElicitRequest:
    choices = choices_of(question)
    answer = {
        "type": "string",
        "title": "Your answer",
        "enum": [str(choice) for choice in choices],
        "enumNames": [encodable(text) for text in choices.values()],
    }
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=encodable(asking_text(question)),
            requested_schema={
                "type": "object",
                "properties": {"answer": answer},
                "required": ["answer"],
            },
        )
    )


def _consent(answer: types.InputResponse | types.ErrorData) -> Consent:
    """Reads the consent from an answer; an unclear one is NONE."""
    if not isinstance(answer, types.ElicitResult) or answer.action == "cancel":
        return Consent.NONE
    if answer.action == "decline":
        return Consent.NO
    said = (answer.content or {}).get("answer")
    return next((choice for choice in Consent if choice == said), Consent.NONE)
