"""Decides about one call: applies the policy and obtains approval."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio

from storage.locks import made_once
from tools.core.calling.call import Call, Permission
from tools.core.calling.program_approvals import Loop
from tools.core.client import Approval, Approvals, Question, digest_of
from tools.core.context import Grant, RequestContext
from tools.core.errors import PermissionDeniedError
from tools.core.machine import first_use
from tools.core.spec import Effect, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import SETTINGS, TOOL, Containment, Decision, Verdict

if TYPE_CHECKING:
    from tools.core.machine import Confining, Machine
    from tools.policy.policy import Policy
    from tools.sandbox.files.sandbox import Sandbox
    from tools.sandbox.processes.confinement.denied_paths import DeniedPaths


class Permissions:
    """Allows calls, asks the user about them, or denies them."""

    def __init__(
        self,
        policy: Callable[[], Policy],  # returns the current rules; the first call may block
        approvals: Callable[[], Approvals],  # creates them when the first one is needed
        machine: Machine | None = None,  # None without processes
        # Returns how the user can allow a tool that a profile does not, or "".
        advise: Callable[[ToolSpec], str] = lambda _spec: "",
    ) -> None:
        self._current_policy = policy
        self._make_approvals = approvals
        self._machine = machine
        self._advise = advise
        # Keyed, because digests are stored, and anyone could guess a short secret from a plain one.
        self._key = os.urandom(32)

    @made_once
    def _first_policy(self) -> Policy:
        return self._current_policy()

    @made_once
    def _approvals(self) -> Approvals:
        return self._make_approvals()

    async def obtain(self, call: Call, files: Callable[[Permission], Sandbox]) -> None:
        """Fills in the permission of a call, even if it is denied.

        An approval is bound to the arguments as the caller sent them, because validated values,
        such as secrets, may hide parts of themselves. `files` returns the files that a permission
        allows, for the tool's own check. If a rule requires approval, nothing is read before the
        answer.
        """
        if "_first_policy" not in vars(self):
            await anyio.to_thread.run_sync(lambda: self._first_policy)
        call.permission.containment, denied = await limits_of(call.spec, self._machine)
        call.permission.unheld = {} if denied is None else denied.unheld
        await self._settle(call.context, call, files)

    async def _settle(
        self, context: RequestContext, call: Call, files: Callable[[Permission], Sandbox]
    ) -> None:
        """Judges a call, and gets approval if it is needed and not given yet."""
        spec, arguments, permission = call.spec, call.checked, call.permission
        policy, decision = await self._judge(call)
        # In a program's loop one answer stands for several calls.
        is_confirmed = decision.verdict is Verdict.ASK and context.loop is None
        contained = permission.containment
        if decision.verdict is Verdict.ASK and permission.approval is None:
            if spec.check is not None and decision.source == TOOL:
                permission.places = policy.places(
                    spec, arguments, containment=contained, is_confirmed=is_confirmed
                )
                granted = context.granted(Grant(sandbox=files(permission), machine=self._machine))
                await spec.check(arguments, granted)
            with nullcontext() if context.deadline is None else context.deadline.paused():
                permission.approval = await self._approval(policy, call, context, decision)
            policy = self._current_policy()  # may have changed during the question
            decision = policy.judge_as(call.named, spec, arguments, containment=contained)
            if decision.verdict is Verdict.DENY:
                permission.decision = decision
            self._check(spec, decision)
            permission.accepted = frozenset(permission.unheld)
        permission.holds = lambda: self._current_policy() is policy
        permission.renew = partial(self._settle, call=call, files=files)
        permission.places = policy.places(
            spec, arguments, containment=contained, is_confirmed=is_confirmed
        )
        if spec.subject is not None and spec.subject.kind is SubjectKind.URL:
            permission.reach = partial(_reaches, policy, spec, arguments, spec.subject.parameter)

    async def close(self, permission: Permission, *, is_final: bool) -> None:
        """Uses an approval up, or keeps it for the same call, which is repeated with answers."""
        if permission.approval is not None and permission.approval.ticket:
            with anyio.CancelScope(shield=True):
                await self._approvals.close(permission.approval, is_final=is_final)

    async def _judge(self, call: Call) -> tuple[Policy, Decision]:
        """Returns the current policy and its decision about a call, which it also records."""
        policy, permission = self._current_policy(), call.permission
        containment = permission.containment
        judge = partial(
            policy.judge_as, call.named, call.spec, call.checked, containment=containment
        )
        decision = judge()
        if decision.verdict is Verdict.ASK:
            find = partial(self._approvals.grants, call.context.identity, call.context.client)
            grants = await anyio.to_thread.run_sync(find)
            if grants:
                decision = judge(grants=grants)
        if permission.unheld:
            decision = decision.asking(permission.unheld)
        permission.decision = decision
        self._check(call.spec, decision)
        return policy, decision

    def _check(self, spec: ToolSpec, decision: Decision) -> None:
        if decision.verdict is not Verdict.DENY:
            return
        rule = f"the rule {decision.rule!r} ({decision.source})"
        advice = self._advice(spec, decision)
        raise PermissionDeniedError(
            f"{spec.name} was not run: {decision.reason}",
            next_actions=[
                f"Do it another way, or ask the user to change {rule}.",
                *([advice] if advice else []),
            ],
        )

    async def _approval(
        self, policy: Policy, call: Call, context: RequestContext, decision: Decision
    ) -> Approval | None:
        """Returns the approval of a call; None if it needs none any more."""
        loop = context.loop
        if loop is None:
            question = self._question(policy, call, decision)
            return await self._approvals.obtain(question, context.link.approver)
        async with loop.turn(call.spec.name):  # another call's answer may have come meanwhile
            policy, decision = await self._judge(call)
            if decision.verdict is Verdict.ASK:
                return await self._approval_in(policy, call, context, decision)
            return None

    async def _approval_in(
        self, policy: Policy, call: Call, context: RequestContext, decision: Decision
    ) -> Approval:
        from storage.approvals import ProgramOffer  # needed only for questions
        from tools.policy.suggested_rules import grant_in_loop, permits, whole_grant_for

        spec, arguments, loop = call.spec, call.checked, cast("Loop", context.loop)
        asking = f"{decision.source}: {decision.rule}"
        if spec.subject is None and spec.destructive:  # its rules do not cover other arguments
            asking += f" with {sorted(arguments)}"
        found = loop.granted(spec.name, asking, partial(permits, policy, spec, arguments))
        if found is not None:
            return found
        question = self._question(policy, call, decision)
        same = grant_in_loop(policy, spec, arguments, loop.approved.get(spec.name))
        whole = whole_grant_for(policy, spec, arguments, decision)
        program = ProgramOffer(
            loop.id,
            loop.name,
            loop.remaining,
            same if call.secrets.text(same) == same else "",
            whole if whole != same else "",
        )
        found = await loop.obtain(
            self._approvals,
            replace(question, grant="", program=program),
            context.link.approver,
            asking=asking,
            rule=" and ".join(question.offers[0]) if question.offers else "",
        )
        loop.approved[spec.name] = arguments
        return found

    def _advice(self, spec: ToolSpec, decision: Decision) -> str:
        """Returns how the user can let it run; a rule of the user's own needs no advice."""
        return "" if decision.source == SETTINGS else self._advise(spec)

    def _question(self, policy: Policy, call: Call, decision: Decision) -> Question:
        # Imported only for questions:
        from tools.conversion.confusables import lookalikes
        from tools.policy.suggested_rules import grant_for, offers_for

        spec, arguments, context = call.spec, call.checked, call.context
        sent, secrets, permission = call.arguments, call.secrets, call.permission
        digest = digest_of(spec.name, sent, context.identity)
        if secrets.found:
            sent = cast("Mapping[str, Any]", secrets.arguments)
            digest = hmac.digest(self._key, digest.encode(), "sha256").hex()
        request = secrets.text(_request(spec, arguments))
        masked = secrets.mask_validated(arguments)
        shown = secrets.text(call.shown) or _format_arguments(masked, sent)
        gist, main = request or secrets.text(call.shown), ""
        if not gist and spec.subject is not None and spec.subject.parameter in masked:
            main = spec.subject.parameter
            gist = f"{masked.get('method', '')} {masked[main]}".lstrip()
        also = [name for name in sent if name not in {main, "method"}] if main else []
        shown = "\n".join(filter(None, [request, shown])) or "(no arguments)"
        grant = "" if permission.unheld else grant_for(policy, spec, arguments)
        offers = offers_for(policy, spec, arguments, decision, permission.containment)
        return Question(
            tool=spec.name,
            identity=context.identity,
            client=context.client,
            digest=digest,
            shown=shown,
            gist=gist
            or _format_arguments({key: masked[key] for key in masked if key in sent}, sent, ", "),
            also=tuple(also),
            warning=lookalikes(shown),
            reason=secrets.text(decision.reason),
            grant=grant if secrets.text(grant) == grant else "",
            offers=tuple(each for each in offers if tuple(map(secrets.text, each)) == each),
            advice=self._advice(spec, decision),
            is_read_whole=bool(call.shown) or Effect.EXECUTE in spec.effects,
        )


def _reaches(
    policy: Policy, spec: ToolSpec, arguments: Mapping[str, Any], parameter: str, url: str
) -> bool:
    return policy.judge(spec, {**arguments, parameter: url}).verdict is not Verdict.DENY


async def limits_of(
    spec: ToolSpec, machine: Machine | None
) -> tuple[Containment, DeniedPaths | None]:
    """Returns how a tool's programs are contained, and the paths that rules deny to them.

    A tool that runs no programs has no containment and no denied paths.
    """
    runs = spec.scope is ToolScope.SYSTEM and Effect.EXECUTE in spec.effects
    if machine is None or not (runs or spec.in_cell):
        return Containment.NONE, None
    running: Confining = await first_use(machine, "code_workers" if spec.in_cell else "processes")
    containment = Containment.NONE
    if await running.is_offline():
        containment = Containment.OFFLINE
    elif await running.is_confined():
        containment = Containment.CONFINED
    return containment, await running.denied()


def _request(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Returns the action of a call that no argument shows, such as its request, or ""."""
    if spec.explain is not None:
        return spec.explain(arguments)
    about = spec.subject
    return f"{about.method} {about.read(arguments)}" if about and about.read else ""


def _format_arguments(
    arguments: Mapping[str, Any], sent: Mapping[str, Any], between: str = "\n"
) -> str:
    return between.join(
        f"{name}: {_value(value, sent.get(name, value))}"
        for name, value in arguments.items()
        if value is not None
    )


def _value(value: object, sent: object) -> str:
    """Formats a value completely; one that is not JSON may hide a part, so it is shown as sent."""
    if isinstance(value, str):
        return value.replace("\n", "\n    ")  # no line can be mistaken for another argument
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return json.dumps(sent, default=repr, ensure_ascii=False)
