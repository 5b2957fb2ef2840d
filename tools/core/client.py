"""Defines a call's access to its client: approvals, model answers and progress reports.

A client of protocol 2026-07-28 answers by repeating the call.
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
"""Rules that would allow a call, and similar ones, from now on."""


class Consent(StrEnum):
    """A user's answer to an approval question."""

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
    """An approval question."""

    tool: str
    identity: Identity
    client: str
    digest: str  # binds the answer to the tool, all its arguments and the caller
    shown: str  # the call's complete action: the command, path, URL, or else the arguments
    reason: str
    grant: str  # the rule that would allow this and similar calls for a while, or ""
    advice: str = ""  # how the user can let it run without questions, or ""
    # Rules that may be written into the settings, narrowest first, two at most.
    offers: tuple[Offer, ...] = ()
    program: ProgramOffer | None = None  # the offer for the calling program, or None
    gist: str = ""  # what the call does, of which a question's first line shows the beginning
    also: tuple[str, ...] = ()  # the arguments that the gist does not show
    warning: str = ""  # words that are not what they look like
    is_read_whole: bool = False  # whether the client shows all of it, however long it is


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval of one call."""

    by: str  # the channel: "client", "command line"
    ticket: str  # its id; empty for a call covered by a program's grant
    is_named: bool = False  # whether the call, when repeated with answers, names the ticket
    # The user's answer: more than ONCE if the program may make similar calls.
    consent: Consent = Consent.ONCE


class RefusedError(PermissionDeniedError):
    """The user denied a call."""

    def __init__(self, tool: str, consent: Consent) -> None:
        super().__init__(
            f"{tool} was not run: the answer to the question was no.",
            next_actions=[
                "Ask the user what to do instead; do not try the same another way.",
                "A client without a terminal answers no by itself: there, a rule has to allow it.",
            ],
        )
        self.consent = consent  # NO, or NO_MORE if the user also denied the rest of the program


class Approver(Protocol):
    """Access to the client's user through the client's own dialogue."""

    tickets: Sequence[str]  # the tickets of the questions that this call answers

    def keep(self, ticket: str) -> bool:
        """Makes a repeated call name the ticket; returns whether the call can be repeated."""

    async def ask(self, question: Question, ticket: str) -> Consent:
        """Asks the user; returns NONE if the client cannot ask, or did not answer this ticket.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then repeats the call.
        """


class Approvals(Protocol):
    """Obtains approvals, one per call; provided to the call path by the server."""

    def grants(self, identity: Identity, client: str) -> tuple[str, ...]:
        """Returns the unexpired rules that the user allowed a client for a while; blocks."""

    async def obtain(self, question: Question, approver: Approver | None) -> Approval:
        """Returns the approval of one call.

        Raises:
            RefusedError: If the user denied it.
            AnswersAwaitedError: If the client must answer first.
        """

    async def given(self, question: Question) -> Approval | None:
        """Returns an approval given before the call, or None.

        Raises:
            RefusedError: If the user denied it.
        """

    async def close(self, approval: Approval, *, is_final: bool) -> None:
        """Uses an approval up, or keeps it for the repeated call."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt for a model."""

    system: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer."""

    text: str
    model: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a model, or of its user, to answer."""

    by: str  # which of the two, in a few words


@dataclass(frozen=True, slots=True)
class NoReply:
    """A failed request to a model."""

    problem: str  # the failure, with the beginning of the response


class AnswersAwaitedError(UnavailableError):
    """The client must ask its model or user first, and then repeats the call."""


class Sampler(Protocol):
    """Access to a model.

    A client of protocol 2026-07-28 repeats the call with its answers, so a tool reaches its prompts
    several times. It must store its answers before it asks again, and always ask the same.

    Attributes:
        kind: The model's provider: "client" or "endpoint".
        at_once: The best number of prompts per request.
        state: The state that the tool passed to its last request in this call; the client may have
            altered it.
    """

    kind: str
    at_once: int
    state: str

    async def ask(
        self, prompts: Sequence[Prompt], *, state: str
    ) -> list[Reply | Refusal | NoReply]:
        """Returns a reply, a refusal or a failure for each prompt.

        Raises:
            AnswersAwaitedError: If the client must answer first; do not catch it.
        """


class Parked(Protocol):
    """The questions of a call that waits for no client."""

    @property
    def awaits(self) -> str:
        """A description of the open questions; empty if there are none."""

    @property
    def open_questions(self) -> Mapping[str, Any]:
        """The open questions in the form of the protocol, by their keys."""

    def answer(self, answers: dict[str, Any], /) -> object:
        """Passes answers to open questions; ignores others."""

    async def put(self, relay: object) -> bool:
        """Asks the client of another call; returns whether it answered any question.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then repeats the call.
        """


class Asking(Protocol):
    """The questions of a call to its client."""

    @property
    def is_with_client(self) -> bool:
        """Returns whether the client is answering a question while it waits."""

    def leave(self) -> Parked:
        """Keeps further questions for the client that next polls the job."""


def digest_of(tool: str, arguments: Mapping[str, Any], identity: Identity) -> str:
    """Returns the SHA-256 of a call in canonical JSON, which is unique to it."""
    said = [tool, arguments, identity.user_id, identity.device_id, identity.agent_id]
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, default=repr)
    return sha256(text.encode()).hexdigest()
