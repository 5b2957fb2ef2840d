"""A model behind an endpoint that speaks OpenAI's chat API: OpenAI, Ollama, llama.cpp and others.

The request and the answer: https://platform.openai.com/docs/api-reference/chat
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
    """Asks a model behind an endpoint.

    Args:
        url: Where the API begins, such as `http://127.0.0.1:11434/v1`.
        model: The model's name there.
        api_key: Sent as a bearer token where it is not empty; never in a log.
        timeout: Seconds that one answer may take, with all repetitions.
        client: Makes what asks the endpoint.
    """

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
        state: str,  # noqa: ARG002  # the call goes on
    ) -> list[Reply | Refusal | NoReply]:
        """A reply to each prompt, that the model refused, or why there is none."""
        return [
            await anyio.to_thread.run_sync(partial(self._ask, prompt), abandon_on_cancel=True)
            for prompt in prompts
        ]

    def _ask(self, prompt: Prompt) -> Reply | Refusal | NoReply:
        # No limit of tokens goes along: its name differs from model to model.
        system = [{"role": "system", "content": prompt.system}] if prompt.system else []
        body = {
            "model": self._model,
            "messages": [*system, {"role": "user", "content": prompt.text}],
        }
        try:
            return self._reply(self._endpoint.post(body))
        except StorageUnavailableError as error:
            logger.warning("The model gives no answer: %s", error.message)
            return NoReply(error.message.rstrip("."))

    def _reply(self, answer: bytes) -> Reply | Refusal | NoReply:
        """Returns what the model said, or why that is not an answer."""
        try:
            choice = json.loads(answer)["choices"][0]
            said = choice["message"]["content"]
            refused = (
                choice["message"].get("refusal") or choice.get("finish_reason") == "content_filter"
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            logger.warning("The model's endpoint did not answer with a chat completion.")
            begin = answer[:SHOWN].decode(errors="replace")
            if self._key:  # an endpoint may repeat what it was sent
                begin = begin.replace(self._key, "***")
            return NoReply(f"the endpoint did not answer with a chat completion, but {begin!r}")
        if refused:
            return Refusal(f"the model {self._model}")
        if isinstance(said, str) and said.strip():
            return Reply(said, self._model)
        return NoReply("its message has no text")
