"""The client's model, asked through the protocol.

Until 2025-11-25 the server sends `sampling/createMessage` in the middle of a call. From 2026-07-28
on it ends the call with an `InputRequiredResult`, and the client makes the same call again with the
answers (https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.rounds import Round
from server.mcp.safe_json import utf8_text
from tools.core.client import AnswersAwaitedError, Prompt, Reply

__all__ = ["RoundSampler", "sampler_of"]

ANSWER_SECONDS = 120.0
"""How long a client may take for one answer; a person may have to agree to it first."""

MOST_AT_ONCE = 25
"""Questions of one round: their texts travel together."""

_REFUSALS = frozenset({"refusal", "content_filter"})
"""Stop reasons with which a model refuses; the protocol leaves the set open."""


def sampler_of(request: ClientRequest) -> CallSampler | RoundSampler | None:
    """Returns the way to the client's model; None if the client offers none."""
    ctx = request.ctx
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return None
    if request.is_modern:
        return RoundSampler(request.this_round)
    return CallSampler(ctx) if ctx.session.can_send_request else None


class CallSampler:
    """Asks in the middle of a call (protocols until 2025-11-25).

    Args:
        ctx: The request that the questions belong to.
    """

    kind = "client"
    at_once = 1
    state = ""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx

    async def ask(self, prompts: Sequence[Prompt], *, state: str) -> list[Reply | None]:  # noqa: ARG002  # the call goes on
        """A reply to each prompt; None where the client or its model refused or failed."""
        return [await self._ask(prompt) for prompt in prompts]

    async def _ask(self, prompt: Prompt) -> Reply | None:
        try:
            result = await self._ctx.session.send_request(
                _request(prompt),
                types.CreateMessageResult,
                request_read_timeout_seconds=ANSWER_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=self._ctx.request_id),
            )
        except (MCPError, ValidationError):
            return None
        return _reply(result)


class RoundSampler:
    """Asks by ending the call, which comes again with the answers (protocol 2026-07-28).

    Args:
        this_round: What came with the call.
    """

    kind = "client"
    at_once = MOST_AT_ONCE

    def __init__(self, this_round: Round) -> None:
        self.state = this_round.state
        self._round = this_round

    async def ask(self, prompts: Sequence[Prompt], *, state: str) -> list[Reply | None]:
        """The replies that came with the call.

        Raises:
            AnswersAwaitedError: If one is missing.
        """
        requests = {_key(prompt): _request(prompt) for prompt in prompts}
        answers = self._round.answers
        if requests.keys() - answers.keys():
            self._round.state = state
            for key, request in requests.items():
                self._round.ask(key, request)
            raise AnswersAwaitedError("The client's model has to answer first.")
        return [_reply(answers[_key(prompt)]) for prompt in prompts]


def _key(prompt: Prompt) -> str:
    """Names a question by what it says, so that no answer is taken for that of another."""
    said = "\0".join((prompt.system, prompt.text, str(prompt.max_tokens)))
    return sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]


def _request(prompt: Prompt) -> types.CreateMessageRequest:
    content = types.TextContent(text=utf8_text(prompt.text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)],
            system_prompt=prompt.system,
            max_tokens=prompt.max_tokens,
            include_context="none",
        )
    )


def _reply(answer: types.InputResponse) -> Reply | None:
    if not isinstance(answer, types.CreateMessageResult | types.CreateMessageResultWithTools):
        return None
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    text = "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
    refused = answer.stop_reason in _REFUSALS
    return None if refused or not text.strip() else Reply(text, answer.model)
