"""Approvals: the person is asked where the client can, else on the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from server.settings_error import SettingsError
from storage.approvals import Approval as Answered
from storage.approvals import ApprovalState, ApprovalStore, Asked, ProgramOffer
from storage.errors import StorageUnavailableError
from storage.models import Identity
from tools.core.client import Approval, Approver, Consent, Offer, Question, RefusedError
from tools.core.errors import ApprovalRequiredError

CLIENT = "client"
COMMAND_LINE = "command line"

ALWAYS = (Consent.ALWAYS, Consent.ALWAYS_WIDER)
"""Answers that take up an offer, in the order of these."""

REFUSALS = frozenset({Consent.NO, Consent.NO_MORE})
TO_PROGRAMS = frozenset({Consent.FOR_PROGRAM, Consent.FOR_PROGRAM_WIDER, Consent.NO_MORE})
"""Answers that count for the rest of a program, and for no other call."""

POLL_SECONDS = 0.25
"""How often an answer on the command line is looked for."""

_logger = logging.getLogger("toolcrib")


class StoredApprovals:
    """Has calls approved: each approval counts for one call and for a time.

    Args:
        store: Where questions and answers are kept, for every process of the data directory.
        root: The root of this server: nothing approved beneath another counts here.
        command: How the command line is called, with what it needs to find the same store.
        wait: Seconds that a call waits while the list of questions is open somewhere.
        expire: Seconds that a question and its approval hold.
        grant: Seconds that a rule is allowed "for a while".
        allow: Writes rules into the settings; None where they could not count there.
        owner: The user whose settings these are; nobody else is offered to change them.
    """

    def __init__(  # noqa: PLR0913  # what can be set of it
        self,
        store: ApprovalStore,
        *,
        root: str,
        command: str,
        wait: float,
        expire: float,
        grant: float,
        allow: Callable[[Offer], None] | None = None,
        owner: str = "",
    ) -> None:
        self._store = store
        self._root = root
        self._command = command
        self._wait = wait
        self._expire = expire
        self._grant = grant
        self._allow = allow
        self._owner = owner

    def grants(self, identity: Identity) -> tuple[str, ...]:
        """The rules that the person allowed for a while and that still hold; blocks."""
        return tuple(grant.rule for grant in self._store.grants(identity, self._root))

    async def obtain(self, question: Question, approver: Approver | None) -> Approval:
        """The approval of one call.

        Raises:
            RefusedError: If the person said no.
            AnswersAwaitedError: If the client must answer first.
        """
        if self._allow is None or question.identity.user_id != self._owner:
            question = replace(question, offers=())
        asked = self._asked(question)
        tickets = () if approver is None else approver.tickets
        found = await self._taken(asked, tickets)
        if found is None and approver is not None:
            found = await self._ask_client(question, asked, approver)
        if found is None:
            found = await self._ask_command_line(question, asked)
        is_named = approver is not None and approver.keep(found.ticket)
        return replace(found, is_named=is_named)

    async def given(self, question: Question) -> Approval | None:
        """An approval of the call that was given before it; None where there is none.

        Raises:
            RefusedError: If the person said no.
        """
        return await self._taken(self._asked(question))

    async def close(self, approval: Approval, *, is_final: bool) -> None:
        """Uses an approval up, or keeps it for the same call when it comes again.

        Where that cannot be written, as on a full disk, it stays taken: it counts for no other
        call, and this one, which has run, keeps its result.
        """
        kept = ApprovalState.KEPT if approval.is_named else ApprovalState.APPROVED
        state = ApprovalState.USED if is_final else kept
        try:
            await anyio.to_thread.run_sync(self._store.close, approval.ticket, state)
        except StorageUnavailableError as error:
            _logger.warning("An approval stays taken: %s", error)

    async def _taken(self, asked: Asked, tickets: Sequence[str] = ()) -> Approval | None:
        """An approval that was given before this call, if any.

        Raises:
            RefusedError: If the person said no meanwhile.
        """
        found = await anyio.to_thread.run_sync(self._store.claim, asked, tickets)
        if found is not None:
            consent = _said(found, asked, Consent.ONCE)
            return Approval(found.decided_by, found.ticket, consent=consent)
        denial = await anyio.to_thread.run_sync(self._store.denial, asked)
        if denial is not None:
            raise RefusedError(asked.tool, _said(denial, asked, Consent.NO))
        return None

    async def _ask_client(
        self, question: Question, asked: Asked, approver: Approver
    ) -> Approval | None:
        """What the person at the client, or at the command line meanwhile, says; None if nothing.

        Raises:
            RefusedError: If they say no.
            AnswersAwaitedError: If the client must answer first.
        """
        ticket = await anyio.to_thread.run_sync(self._store.among, asked, approver.tickets)
        if ticket is None:
            ticket = await anyio.to_thread.run_sync(
                self._store.open, asked, ApprovalState.ASKED, self._expire
            )
        consent = await self._first_answer(question, ticket, approver)
        if consent is Consent.NONE or not _is_offered(asked, consent):
            return await self._taken(asked)
        rules: Offer = ()
        if consent in ALWAYS:
            rules = await anyio.to_thread.run_sync(self._chosen, ticket, consent)
            if not rules:
                return await self._taken(asked)
        # Shielded: a call that is cancelled here leaves no approval that another could take.
        found: Approval | None = None
        with anyio.CancelScope(shield=True):
            answer = partial(
                self._store.answer, ticket, by=CLIENT, **answered(consent, asked.program)
            )
            is_first = await anyio.to_thread.run_sync(answer)
            if is_first and consent is Consent.FOR_A_WHILE and question.grant:
                await anyio.to_thread.run_sync(
                    partial(self._store.grant, asked, by=CLIENT, seconds=self._grant)
                )
            if is_first and rules:
                await anyio.to_thread.run_sync(self._write, rules)
            found = await self._taken(asked)
        return found  # noqa: RET504  # a scope might end without its last statement

    def _chosen(self, ticket: str, consent: Consent) -> Offer:
        """The rules that an answer means, as they were shown; none where they were not."""
        offers = next((each.asked.offers for each in self._store.find(ticket)), ())
        at = ALWAYS.index(consent)
        return offers[at] if at < len(offers) else ()

    def _write(self, rules: Offer) -> None:
        """Writes rules into the settings; where that fails, the call is allowed all the same."""
        try:
            if self._allow is not None:
                self._allow(rules)
        except (SettingsError, OSError) as error:
            _logger.warning("%s is not in the settings: %s", " and ".join(rules), error)

    async def _first_answer(self, question: Question, ticket: str, approver: Approver) -> Consent:
        """The client's answer; NONE as soon as the command line has one."""
        consent = Consent.NONE

        async def ask() -> None:
            nonlocal consent
            consent = await approver.ask(question, ticket)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await self._answered(ticket)
            group.cancel_scope.cancel()
        return consent

    async def _ask_command_line(self, question: Question, asked: Asked) -> Approval:
        """What the person at the command line says.

        Raises:
            RefusedError: If they say no.
        """
        ticket = await anyio.to_thread.run_sync(
            self._store.open, asked, ApprovalState.PENDING, self._expire
        )
        if await anyio.to_thread.run_sync(self._store.is_watched):
            with anyio.move_on_after(self._wait):
                await self._answered(ticket)
        found = await self._taken(asked)
        if found is not None:
            return found
        raise ApprovalRequiredError(
            f"{question.tool} was not run: the user has to approve it first. {question.reason}",
            next_actions=[
                (
                    f"Ask the user to run `{self._command} approve {ticket[:8]}` in a terminal, "
                    f"then make the very same call again within {self._expire / 60:.0f} minutes."
                ),
                *([question.advice] if question.advice else []),
                "Or do it another way, with a tool that needs no approval.",
            ],
        )

    async def _answered(self, ticket: str) -> None:
        """Waits until somebody has answered a question, or it has expired."""
        waiting = {ApprovalState.ASKED, ApprovalState.PENDING}
        while await anyio.to_thread.run_sync(self._store.state, ticket) in waiting:  # noqa: ASYNC110  # another process has the event
            await anyio.sleep(POLL_SECONDS)

    def _asked(self, question: Question) -> Asked:
        return Asked(
            identity=question.identity,
            root=self._root,
            digest=question.digest,
            tool=question.tool,
            client=question.client,
            shown=question.shown,
            reason=question.reason,
            rule=question.grant,
            offers=question.offers,
            program=question.program,
        )


def answered(consent: Consent, program: ProgramOffer | None) -> dict[str, Any]:
    """What is written down of an answer to a question, with what that offered to a program."""
    said = str(consent) if consent in TO_PROGRAMS else ""
    return {"approved": consent not in REFUSALS, "said": said, "program": program}


def _said(found: Answered, asked: Asked, otherwise: Consent) -> Consent:
    """What a person said to a call; what they said to a program counts for that run alone."""
    is_of_run = found.said and found.asked.program == asked.program
    return Consent(found.said) if is_of_run else otherwise


def _is_offered(asked: Asked, consent: Consent) -> bool:
    """Whether an answer is one of those that the person could give, as far as programs go."""
    program = asked.program
    match consent:
        case Consent.FOR_PROGRAM:
            return program is not None and bool(program.same and program.more)
        case Consent.FOR_PROGRAM_WIDER:
            return program is not None and bool(program.whole and program.more)
        case Consent.NO_MORE:
            return program is not None
        case _:
            return True
