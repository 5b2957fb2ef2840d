"""A sampler for models behind an OpenAI-compatible chat API: OpenAI, Ollama, llama.cpp, others.

Requests and responses: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial

import anyio.to_thread

from storage.errors import StorageUnavailableError
from storage.index.embedders.endpoint import SHOWN, Endpoint
from storage.outbound import ClientFactory, plain_client
from tools.core.client import NoReply, Prompt, Refusal, Reply

logger = logging.getLogger("toolcrib.chat")


class ChatSampler:
    """Samples from a model behind an HTTP endpoint."""

    kind = "endpoint"
    at_once = 1
    state = ""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str = "",
        timeout: float = 60.0,
        client: ClientFactory = plain_client,
    ) -> None:
        self._model = model
        self._key = api_key
        self._endpoint = Endpoint(
            f"{url.rstrip('/')}/chat/completions", api_key, timeout=timeout, client=client
        )

    async def ask(
        self,
        prompts: Sequence[Prompt],
        *,
        state: str,  # noqa: ARG002  # part of the Sampler interface
    ) -> list[Reply | Refusal | NoReply]:
        """Returns a reply to each prompt, or a refusal, or the reason for a missing reply."""
        return [
            await anyio.to_thread.run_sync(partial(self._ask, prompt), abandon_on_cancel=True)
            for prompt in prompts
        ]

    def _ask(self, prompt: Prompt) -> Reply | Refusal | NoReply:
        # Sets no token limit: its name differs between models.
        system = [{"role": "system", "content": prompt.system}] if prompt.system else []
        body = {
            "model": self._model,
            "messages": [*system, {"role": "user", "content": prompt.text}],
        }
        try:
            return self._reply(self._endpoint.post(body))
        except StorageUnavailableError as error:
            logger.warning("The model did not answer: %s", error.message)
            return NoReply(error.message.rstrip("."))

    def _reply(self, answer: bytes) -> Reply | Refusal | NoReply:
        try:
            choice = json.loads(answer)["choices"][0]
            said = choice["message"]["content"]
            refused = (
                choice["message"].get("refusal") or choice.get("finish_reason") == "content_filter"
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            logger.warning("The model's endpoint did not answer with a chat completion.")
            begin = answer[:SHOWN].decode(errors="replace")
            if self._key:  # an endpoint may echo the request
                begin = begin.replace(self._key, "***")
            return NoReply(f"the endpoint did not answer with a chat completion, but {begin!r}")
        if refused:
            return Refusal(f"the model {self._model}")
        if isinstance(said, str) and said.strip():
            return Reply(said, self._model)
        return NoReply("its message has no text")
