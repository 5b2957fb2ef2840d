"""What a tool asks of a model: the client's own, or one that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tools.core.errors import UnavailableError

__all__ = ["AnswersAwaitedError", "Prompt", "Reply", "Sampler"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model.

    Attributes:
        system: What it is to do.
        text: What it is to do it with.
        max_tokens: How long its answer may be.
    """

    system: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Attributes:
        text: Its answer.
        model: Its name.
    """

    text: str
    model: str


class AnswersAwaitedError(UnavailableError):
    """The client has to ask its model first, and then makes the same call once more."""


class Sampler(Protocol):
    """The way to a model.

    A client of protocol 2026-07-28 makes the same call again with its answers, so that a tool comes
    to its questions several times: it keeps what it got before it asks on, and asks the same about
    the same.

    Attributes:
        kind: Whose model it is: "client" or "endpoint".
        at_once: How many prompts one asking takes best.
        state: What the tool handed over when it last asked, in this same call; the client could
            have changed it.
    """

    kind: str
    at_once: int
    state: str

    async def ask(self, prompts: Sequence[Prompt], *, state: str) -> list[Reply | None]:
        """A reply to each prompt; None where the model, or whoever has it, refused or failed.

        Args:
            prompts: The questions.
            state: What to have again if the call is made once more.

        Raises:
            AnswersAwaitedError: If the client must answer first; let it pass.
        """
