"""Obtains approvals: through the client if it can ask, otherwise on the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from server.settings_file import SettingsError
from storage.approvals import Approval as Answered
from storage.approvals import ApprovalState, ApprovalStore, Asked, ProgramOffer
from storage.errors import StorageUnavailableError
from storage.models import Identity
from tools.core.client import Approval, Approver, Consent, Offer, Question, RefusedError
from tools.core.errors import ApprovalRequiredError

CLIENT = "client"
COMMAND_LINE = "command line"

ALWAYS = (Consent.ALWAYS, Consent.ALWAYS_WIDER)
"""Answers that accept an offer, in the order of the offers."""

REFUSALS = frozenset({Consent.NO, Consent.NO_MORE})
TO_PROGRAMS = frozenset({Consent.FOR_PROGRAM, Consent.FOR_PROGRAM_WIDER, Consent.NO_MORE})
"""Answers that apply to the rest of a program, and to no other call."""

POLL_SECONDS = 0.25
"""Poll interval for an answer on the command line."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True)
class StoredApprovals:
    """Obtains approvals of calls: each applies to one call and expires."""

    store: ApprovalStore  # of all processes of the data directory
    root: str  # approvals under another root do not apply
    command: str  # of approvals, with options that select the same store
    wait: float  # seconds that a call waits while someone watches the list of questions
    expire: float  # seconds until a question and its approval expire
    grant: float  # seconds of an approval "for a while"
    allow: Callable[[Offer], None] | None = None  # writes rules into the settings, if they count
    owner: str = ""  # the user who owns the settings; others are not offered to change them

    def grants(self, identity: Identity, client: str) -> tuple[str, ...]:
        """Returns the rules that the user allowed a client for a while; blocks."""
        return tuple(grant.rule for grant in self.store.grants(identity, self.root, client))

    async def obtain(self, question: Question, approver: Approver | None) -> Approval:
        """Returns the approval of a call, asking if there is none."""
        if self.allow is None or question.identity.user_id != self.owner:
            question = replace(question, offers=())
        asked = self._make_asked(question)
        tickets = () if approver is None else approver.tickets
        found = await self._claim(asked, tickets)
        if found is None and approver is not None:
            found = await self._ask_client(question, asked, approver)
        if found is None:
            found = await self._ask_command_line(question, asked)
        is_named = approver is not None and approver.keep(found.ticket)
        return replace(found, is_named=is_named)

    async def given(self, question: Question) -> Approval | None:
        """Returns an approval given before the call, if there is one."""
        return await self._claim(self._make_asked(question))

    async def close(self, approval: Approval, *, is_final: bool) -> None:
        """Uses up an approval, or keeps it for a retry of the same call.

        If that cannot be written, as on a full disk, the approval stays claimed: it applies to no
        other call, and this call, which has run, keeps its result.
        """
        kept = ApprovalState.KEPT if approval.is_named else ApprovalState.APPROVED
        state = ApprovalState.USED if is_final else kept
        try:
            await anyio.to_thread.run_sync(self.store.close, approval.ticket, state)
        except StorageUnavailableError as error:
            _logger.warning("An approval stays claimed: %s", error)

    async def _claim(self, asked: Asked, tickets: Sequence[str] = ()) -> Approval | None:
        """Claims an approval given before this call, if any."""
        found = await anyio.to_thread.run_sync(self.store.claim, asked, tickets)
        if found is not None:
            consent = _consent_from(found, asked, Consent.ONCE)
            return Approval(found.decided_by, found.ticket, consent=consent)
        denial = await anyio.to_thread.run_sync(self.store.denial, asked)
        if denial is not None:
            raise RefusedError(asked.tool, _consent_from(denial, asked, Consent.NO))
        return None

    async def _ask_client(
        self, question: Question, asked: Asked, approver: Approver
    ) -> Approval | None:
        """Returns the answer from the client or meanwhile the command line; None without one."""
        ticket = await anyio.to_thread.run_sync(self.store.among, asked, approver.tickets)
        if ticket is None:
            ticket = await anyio.to_thread.run_sync(
                self.store.open, asked, ApprovalState.ASKED, self.expire
            )
        consent = await self._first_answer(question, ticket, approver)
        if consent is Consent.NONE or not _is_offered(asked, consent):
            return await self._claim(asked)
        rules: Offer = ()
        if consent in ALWAYS:
            rules = await anyio.to_thread.run_sync(self._chosen_rules, ticket, consent)
            if not rules:
                return await self._claim(asked)
        # Shielded: a call cancelled here must leave no approval that another could claim.
        found: Approval | None = None
        with anyio.CancelScope(shield=True):
            answer = partial(
                self.store.answer, ticket, by=CLIENT, **answer_fields(consent, asked.program)
            )
            is_first = await anyio.to_thread.run_sync(answer)
            if is_first and consent is Consent.FOR_A_WHILE and question.grant:
                await anyio.to_thread.run_sync(
                    partial(self.store.grant, asked, by=CLIENT, seconds=self.grant)
                )
            if is_first and rules:
                await anyio.to_thread.run_sync(self._write, rules)
            found = await self._claim(asked)
        return found  # noqa: RET504  # a scope might end without its last statement

    def _chosen_rules(self, ticket: str, consent: Consent) -> Offer:
        """Returns the rules of an answer as they were shown; empty if none were shown."""
        offers = next((each.asked.offers for each in self.store.find(ticket)), ())
        at = ALWAYS.index(consent)
        return offers[at] if at < len(offers) else ()

    def _write(self, rules: Offer) -> None:
        """Writes rules into the settings; a failure does not affect the call."""
        try:
            if self.allow is not None:
                self.allow(rules)
        except (SettingsError, OSError) as error:
            _logger.warning("%s is not in the settings: %s", " and ".join(rules), error)

    async def _first_answer(self, question: Question, ticket: str, approver: Approver) -> Consent:
        """Returns the client's answer; NONE as soon as the command line has one."""
        consent = Consent.NONE

        async def ask() -> None:
            nonlocal consent
            consent = await approver.ask(question, ticket)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await self._wait_for_answer(ticket)
            group.cancel_scope.cancel()
        return consent

    async def _ask_command_line(self, question: Question, asked: Asked) -> Approval:
        """Returns the answer from the command line."""
        ticket = await anyio.to_thread.run_sync(
            self.store.open, asked, ApprovalState.PENDING, self.expire
        )
        if await anyio.to_thread.run_sync(self.store.is_watched):
            with anyio.move_on_after(self.wait):
                await self._wait_for_answer(ticket)
        found = await self._claim(asked)
        if found is not None:
            return found
        raise ApprovalRequiredError(
            f"{question.tool} was not run: the user has to approve it first. {question.reason}",
            next_actions=[
                (
                    f"Ask the user to run `{self.command} approve {ticket[:8]}` in a terminal, "
                    f"then repeat exactly the same call within {self.expire / 60:.0f} minutes."
                ),
                *([question.advice] if question.advice else []),
                "Or do it another way, with a tool that needs no approval.",
            ],
        )

    async def _wait_for_answer(self, ticket: str) -> None:
        """Waits until a question is answered or expires."""
        waiting = {ApprovalState.ASKED, ApprovalState.PENDING}
        while await anyio.to_thread.run_sync(self.store.state, ticket) in waiting:  # noqa: ASYNC110  # another process has the event
            await anyio.sleep(POLL_SECONDS)

    def _make_asked(self, question: Question) -> Asked:
        return Asked(
            identity=question.identity,
            root=self.root,
            digest=question.digest,
            tool=question.tool,
            client=question.client,
            shown=question.shown,
            reason=" ".join(filter(None, [question.warning, question.reason])),
            rule=question.grant,
            offers=question.offers,
            program=question.program,
        )


def answer_fields(consent: Consent, program: ProgramOffer | None) -> dict[str, Any]:
    """Returns an answer as stored, with the offer to its program."""
    said = str(consent) if consent in TO_PROGRAMS else ""
    return {"approved": consent not in REFUSALS, "said": said, "program": program}


def _consent_from(found: Answered, asked: Asked, otherwise: Consent) -> Consent:
    """Returns a user's answer to a call; answers to a program apply to that run alone."""
    is_of_run = found.said and found.asked.program == asked.program
    return Consent(found.said) if is_of_run else otherwise


def _is_offered(asked: Asked, consent: Consent) -> bool:
    """Returns whether an answer about a program was among the choices."""
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
