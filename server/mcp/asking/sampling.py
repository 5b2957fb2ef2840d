"""The client's model, asked through the protocol.

https://modelcontextprotocol.io/specification/2026-07-28/client/sampling
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import mcp_types as types

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.function_run import FunctionRun, round_of
from tools.core.client import NoReply, Prompt, Refusal, Reply
from tools.core.invisible import encodable

ANSWER_SECONDS = 120.0
"""How long a client may take for one answer; a person may have to agree to it first."""

MOST_AT_ONCE = 25
"""Questions of one round: their texts travel together."""

_REFUSALS = frozenset({"refusal", "content_filter"})
"""Stop reasons with which a model refuses; the protocol leaves the set open."""

_REJECTED = -1
"""The error with which clients say that their person refused (2025-11-25, Sampling)."""


class ClientSampler:
    """Asks the model of the client that makes a call."""

    kind = "client"

    def __init__(self, request: ClientRequest | FunctionRun) -> None:
        this_round = round_of(request)
        self.at_once = 1 if this_round is None else MOST_AT_ONCE
        self.state = "" if this_round is None else this_round.state
        self._request = request

    async def ask(
        self, prompts: Sequence[Prompt], *, state: str
    ) -> list[Reply | Refusal | NoReply]:
        """A reply to each prompt, who refused, or why there is none.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then makes the call again.
        """
        questions = {_key(prompt): _question(prompt) for prompt in prompts}
        answers = await self._request.ask(questions, seconds=ANSWER_SECONDS, state=state)
        return [_reply(answers[_key(prompt)]) for prompt in prompts]


def _key(prompt: Prompt) -> str:
    """Names a question by what it says, so that no answer is taken for that of another."""
    said = "\0".join((prompt.system, prompt.text, str(prompt.max_tokens)))
    return sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]


def _question(prompt: Prompt) -> types.CreateMessageRequest:
    content = types.TextContent(text=encodable(prompt.text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)],
            system_prompt=prompt.system or None,
            max_tokens=prompt.max_tokens,
            include_context="none",
        )
    )


def _reply(answer: types.InputResponse | types.ErrorData) -> Reply | Refusal | NoReply:
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
