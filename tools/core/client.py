"""What a call has of its client: a person's approval, a model's answer, a place to report progress.

A client of protocol 2026-07-28 answers by making the same call again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from storage.models import Identity
from tools.core.errors import PermissionDeniedError, UnavailableError

if TYPE_CHECKING:  # the processes of function files start without the record
    from storage.approvals import ProgramOffer

ProgressReporter = Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]
"""Reports (done, total, message) to the caller."""


Offer = tuple[str, ...]
"""Rules that would allow a call, and its like, from now on."""


class Consent(StrEnum):
    """What a person said to a call."""

    ONCE = "once"
    FOR_A_WHILE = "for_a_while"
    ALWAYS = "always"
    ALWAYS_WIDER = "always_wider"
    FOR_PROGRAM = "for_program"
    FOR_PROGRAM_WIDER = "for_program_wider"
    NO = "no"
    NO_MORE = "no_more"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked.

    Attributes:
        tool: The tool's name.
        identity: Whose call it is.
        client: Name of the client, as it says it.
        digest: What the answer is bound to: the tool, all of its arguments and whose call it is.
        shown: What the call would do, whole: the command, the path, the URL, else the arguments.
        reason: Why somebody is asked.
        grant: The rule that would allow this and its like for a while; empty where none would.
        advice: How the user can have it run without being asked; empty where nobody says.
        offers: What may be written into the settings, the narrowest first, two at most.
        program: What may be allowed to the program that makes the call; None where none does.
        is_read_whole: Whether the client shows all of it, however long that is.
    """

    tool: str
    identity: Identity
    client: str
    digest: str
    shown: str
    reason: str
    grant: str
    advice: str = ""
    offers: tuple[Offer, ...] = ()
    program: ProgramOffer | None = None
    is_read_whole: bool = False


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval of one call.

    Attributes:
        by: Who gave it: "client", "command line".
        ticket: Names it; empty where it is one of those that were allowed to a program together.
        is_named: Whether the call, if it comes again with answers, names the ticket.
        consent: What was said: more than ONCE where the program may go on with calls like it.
    """

    by: str
    ticket: str
    is_named: bool = False
    consent: Consent = Consent.ONCE


class RefusedError(PermissionDeniedError):
    """The person said no to a call.

    Attributes:
        consent: NO, or NO_MORE where they said that to the rest of a program as well.
    """

    def __init__(self, tool: str, consent: Consent) -> None:
        super().__init__(
            f"{tool} was not run: the user said no.",
            next_actions=["Ask the user what to do instead; do not try the same another way."],
        )
        self.consent = consent


class Approver(Protocol):
    """The way to a person: the client's own dialogue.

    Attributes:
        tickets: The questions whose answers came with this call, by their tickets.
    """

    tickets: Sequence[str]

    def keep(self, ticket: str) -> bool:
        """Has the call name a ticket if it comes again; whether it can come again."""

    async def ask(self, question: Question, ticket: str) -> Consent:
        """Asks the person; NONE where the client cannot ask, or no answer to this very ticket came.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then makes the call again.
        """


class Approvals(Protocol):
    """Has calls approved, once each; handed to the call path by the server."""

    def grants(self, identity: Identity) -> tuple[str, ...]:
        """The rules that the person allowed for a while and that still hold; blocks."""

    async def obtain(self, question: Question, approver: Approver | None) -> Approval:
        """The approval of one call.

        Raises:
            RefusedError: If the person said no.
            AnswersAwaitedError: If the client must answer first.
        """

    async def given(self, question: Question) -> Approval | None:
        """An approval of the call that was given before it; None where there is none.

        Raises:
            RefusedError: If the person said no.
        """

    async def close(self, approval: Approval, *, is_final: bool) -> None:
        """Uses an approval up, or keeps it for the same call when it comes again."""


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

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a model, or the person who has it, would not answer.

    Attributes:
        by: Which of the two, in a few words.
    """

    by: str


@dataclass(frozen=True, slots=True)
class NoReply:
    """That asking a model failed.

    Attributes:
        problem: What went wrong, with the beginning of what was answered instead.
    """

    problem: str


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

    async def ask(
        self, prompts: Sequence[Prompt], *, state: str
    ) -> list[Reply | Refusal | NoReply]:
        """A reply to each prompt, who refused, or why there is none.

        Args:
            prompts: The questions.
            state: What to have again if the call is made once more.

        Raises:
            AnswersAwaitedError: If the client must answer first; let it pass.
        """


def digest_of(tool: str, arguments: Mapping[str, Any], identity: Identity) -> str:
    """SHA-256 over a call in canonical JSON, hexadecimal: any other call has another."""
    said = [tool, arguments, identity.user_id, identity.device_id, identity.agent_id]
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, default=repr)
    return sha256(text.encode()).hexdigest()
