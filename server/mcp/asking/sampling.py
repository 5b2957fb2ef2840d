"""The client's model, asked through the protocol.

https://modelcontextprotocol.io/specification/2026-07-28/client/sampling
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import mcp_types as types

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.safe_json import utf8_text
from tools.core.client import Prompt, Reply

__all__ = ["ClientSampler"]

ANSWER_SECONDS = 120.0
"""How long a client may take for one answer; a person may have to agree to it first."""

MOST_AT_ONCE = 25
"""Questions of one round: their texts travel together."""

_REFUSALS = frozenset({"refusal", "content_filter"})
"""Stop reasons with which a model refuses; the protocol leaves the set open."""


class ClientSampler:
    """Asks the model of the client that makes a call."""

    kind = "client"

    def __init__(self, request: ClientRequest) -> None:
        self.at_once = MOST_AT_ONCE if request.is_modern else 1
        self.state = request.this_round.state if request.is_modern else ""
        self._request = request

    async def ask(self, prompts: Sequence[Prompt], *, state: str) -> list[Reply | None]:
        """A reply to each prompt; None where the client or its model refused or failed.

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
    content = types.TextContent(text=utf8_text(prompt.text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)],
            system_prompt=prompt.system,
            max_tokens=prompt.max_tokens,
            include_context="none",
        )
    )


def _reply(answer: types.InputResponse | types.ErrorData) -> Reply | None:
    if not isinstance(answer, types.CreateMessageResult | types.CreateMessageResultWithTools):
        return None
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    text = "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
    refused = answer.stop_reason in _REFUSALS
    return None if refused or not text.strip() else Reply(text, answer.model)
