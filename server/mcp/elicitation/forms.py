"""Asks a client's user and model: for approvals, for functions that ask, and for samples.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from textwrap import indent
from typing import Any

import mcp_types as types

from server.mcp.elicitation.questions import ANSWER_SECONDS, Answer, Relay, can_ask
from server.mcp.visible import visible, visible_form, visible_lines
from server.mcp.wire import MOST_AT_ONCE, utf8_json, wants_log
from storage.index.bounded import clip, clip_line
from tools.core.client import (
    AnswersAwaitedError,
    Consent,
    NoReply,
    Prompt,
    Question,
    Refusal,
    Reply,
)
from tools.core.elicitation.asker import Capability, Filled, Form, LogLevel, Peer, Root
from tools.core.errors import UnavailableError
from tools.core.unicode_safety import encodable

SHOWN_CHARACTERS = 6_000
"""Maximum length of a shown call; longer ones are cut in the middle unless required in full."""

GIST_CHARACTERS = 100
NAME_CHARACTERS = 40
"""Maximum lengths in the first line of a question, of which clients show a line or two."""

MODEL_SECONDS = 120.0
"""Time for one reply of a client's model; the user may have to agree first."""

MOST_PROMPTS = 25
"""Prompts in one round, which are sent in one message."""

_REFUSALS = frozenset({"refusal", "content_filter"})
"""Stop reasons of a refusing model; the protocol leaves the set open."""

_REJECTED = -1
"""Error code of clients whose user refused (2025-11-25, Sampling)."""

TITLES_SINCE = "2025-11-25"
"""The protocol that introduced titles for a form's choices (SEP-1330)."""

_NAME = re.compile("[a-z_][a-z0-9_]{0,63}")


class ClientApprover:
    """Asks the user of the calling client."""

    def __init__(self, request: Relay) -> None:
        self._request = request
        self._round = request.retried_round
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
    """Returns the text of a question, with invisible characters marked.

    Some clients show only its first line or two.
    """
    who = clip_line(visible(question.client), NAME_CHARACTERS) or "An agent"
    shown = visible_lines(question.shown)
    if len(shown) > SHOWN_CHARACTERS and not question.is_read_whole:
        half = SHOWN_CHARACTERS // 2
        left_out = len(shown) - 2 * half
        shown = f"{shown[:half]}\n[… {left_out} characters are not shown here …]\n{shown[-half:]}"
    # Indented, so that no line of the call passes for one of the question.
    shown = indent(shown, "    ", lambda _line: True)
    reason, program = visible(question.reason), question.program
    if program is not None:
        reason = f"{reason} The program belongs to {who}.".lstrip()
        who = clip_line(visible(program.name), NAME_CHARACTERS)
    lines = [visible(question.warning), _headline(who, question), reason, shown]
    return "\n".join(filter(None, lines))


def _headline(who: str, question: Question) -> str:
    lines = (" ".join(line.split()) for line in question.gist.splitlines())
    gist = visible("\n".join(filter(None, lines)))
    facts = []
    if question.program is not None and question.program.more:
        more = question.program.more
        facts.append(f"{more} more call{'s' * (more > 1)} may follow")
    if len(gist) > GIST_CHARACTERS:
        facts.append(f"{len(question.shown):,} characters in all")
    told = f" ({'; '.join(facts)})" if facts else ""
    told += f": {clip(gist, GIST_CHARACTERS)}" if gist else ""
    also = clip_line(visible(", ".join(question.also)), NAME_CHARACTERS)
    return f"{who} wants to call {question.tool}{told}" + f" (with {also})" * bool(also)


def choices_of(question: Question) -> dict[Consent, str]:
    """Returns the possible answers with their labels."""
    choices = {Consent.ONCE: "Allow this call once"}
    if question.grant:
        alone = f", in {visible(question.client)} alone" if question.client else ""
        choices[Consent.FOR_A_WHILE] = f"Allow {visible(question.grant)} for a while{alone}"
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


def _consent(answer: Answer) -> Consent:
    """Reads the consent from an answer; an unclear one is NONE."""
    if not isinstance(answer, types.ElicitResult) or answer.action == "cancel":
        return Consent.NONE
    if answer.action == "decline":
        return Consent.NO
    said = (answer.content or {}).get("answer")
    return next((choice for choice in Consent if choice == said), Consent.NONE)


class ClientPeer(Peer):
    """The client of a function."""

    def __init__(self, run: Relay) -> None:
        self._run = run
        self._telling = 0

    async def fill(self, tool: str, form: Form) -> Filled:
        """Shows a form to the client's user and returns the result."""
        client = visible(self._run.client) or "this client"
        if not self._run.offers_forms:
            error = UnavailableError(
                f"{tool} wanted to ask the user something, but {client} cannot show a form"
                " (it offers no elicitation).",
                next_actions=[f"Call {tool} from a client that shows forms."],
            )
            raise self.without("elicitation", error)
        ctx = self._run.waiting()
        knows_titles = ctx is None or ctx.protocol_version >= TITLES_SINCE
        question = _question(tool, form.message, form.schema if knows_titles else _older(form))
        answer = await self._answer(question, form.name if _NAME.fullmatch(form.name) else "")
        if isinstance(answer, types.ElicitResult):
            return Filled(answer.action, answer.content or {})
        said = answer.message if isinstance(answer, types.ErrorData) else "no answer to a form"
        raise UnavailableError(f"{client} did not show the form of {tool}: {visible(said)}")

    async def roots(self, tool: str) -> list[Root]:
        """Returns the client's working directories."""
        request = types.ListRootsRequest()
        if can_ask(self._run.capabilities, request):
            answer = await self._answer(request, "")
            if isinstance(answer, types.ListRootsResult):
                return [Root(str(each.uri), each.name or "") for each in answer.roots]
        return await super().roots(tool)

    def without(self, capability: Capability, error: UnavailableError) -> UnavailableError:
        """Records that a tool failed for lack of a client capability; returns the error."""
        self._run.note_missing(capability, error.message)
        return error

    async def _answer(self, question: types.InputRequest, name: str) -> Answer:
        key = name or secrets.token_hex(16)
        return (await self._run.ask({key: question}, seconds=ANSWER_SECONDS))[key]

    async def log(self, tool: str, level: LogLevel, text: str) -> None:
        """Logs a message, and sends it to the client if the level is high enough."""
        await super().log(tool, level, text)
        ctx = self._run.waiting()
        floor = None if self._run.is_modern else self._run.level
        if ctx is None or self._telling >= MOST_AT_ONCE or not wants_log(ctx, level, floor):
            return
        params = types.LoggingMessageNotificationParams(
            level=level, logger=tool, data=encodable(text)
        )
        self._telling += 1
        try:
            await ctx.session.send_notification(
                types.LoggingMessageNotification(params=params), ctx.request_id
            )
        finally:
            self._telling -= 1

    async def changed(self, uri: str) -> None:
        """Notifies subscribers that a resource changed."""
        await self._run.changed(uri)


def _question(tool: str, message: str, schema: Mapping[str, Any]) -> types.ElicitRequest:
    """Builds a form that names the tool, with invisible characters marked."""
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=encodable(f"{tool!r} asks: {visible_lines(message)}"),
            requested_schema=utf8_json(visible_form(schema)),
        )
    )


def _older(form: Form) -> dict[str, Any]:
    """Converts a form's choices to the format for clients before SEP-1330."""
    fields = form.schema["properties"]
    return {
        **form.schema,
        "properties": {name: _with_enum_names(each) for name, each in fields.items()},
    }


def _with_enum_names(field: Mapping[str, Any]) -> Mapping[str, Any]:
    if "oneOf" not in field:
        return field
    rest = {key: value for key, value in field.items() if key != "oneOf"}
    choices = field["oneOf"]
    return {
        **rest,
        "enum": [each["const"] for each in choices],
        "enumNames": [each["title"] for each in choices],
    }


class ClientSampler:
    """Samples from the model of the calling client."""

    kind = "client"

    def __init__(self, request: Relay) -> None:
        this_round = request.retried_round
        self.at_once = 1 if this_round is None else MOST_PROMPTS
        self.state = "" if this_round is None else this_round.state
        self._request = request

    async def ask(
        self, prompts: Sequence[Prompt], *, state: str
    ) -> list[Reply | Refusal | NoReply]:
        """Returns a reply to each prompt, or a refusal, or the reason for a missing reply."""
        questions = {_key(prompt): _sampling(prompt) for prompt in prompts}
        answers = await self._request.ask(questions, seconds=MODEL_SECONDS, state=state)
        return [_reply(answers[_key(prompt)]) for prompt in prompts]


def _key(prompt: Prompt) -> str:
    """Names a question by its content, so that no answer is mistaken for another's."""
    said = "\0".join((prompt.system, prompt.text, str(prompt.max_tokens)))
    return sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]


def _sampling(prompt: Prompt) -> types.CreateMessageRequest:
    content = types.TextContent(text=encodable(prompt.text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)],
            system_prompt=prompt.system or None,
            max_tokens=prompt.max_tokens,
            include_context="none",
        )
    )


def _reply(answer: Answer) -> Reply | Refusal | NoReply:
    if isinstance(answer, types.ErrorData) and answer.code == _REJECTED:
        return Refusal("the user of the client")
    if not isinstance(answer, types.CreateMessageResult | types.CreateMessageResultWithTools):
        told = answer.message if isinstance(answer, types.ErrorData) else "another kind of result"
        return NoReply(f"the client answered with {told[:200]!r}")
    if answer.stop_reason in _REFUSALS:
        return Refusal("the model of the client")
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    text = "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
    return Reply(text, answer.model) if text.strip() else NoReply("its message has no text")
