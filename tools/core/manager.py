"""Implements the one path that every call takes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import anyio

from storage.keeping.changes.models import Caller
from storage.library import Library
from tools.conversion.arguments.known_names import translated
from tools.core.audit.recording import Audit, Recording
from tools.core.calling.call import (
    Call,
    FinishedCall,
    Permission,
    ResultLimits,
    Turn,
    Turns,
    check_depth,
    in_time,
    may_last,
)
from tools.core.calling.fitting import Fitting
from tools.core.calling.nested import Made, ToolCall, run_batch
from tools.core.client import AnswersAwaitedError
from tools.core.collections import Collections
from tools.core.context import Calls, Grant, RequestContext
from tools.core.errors import PermissionDeniedError, Words, as_tool_error, only_cause
from tools.core.machine import Machine
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry, check_admitted
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope
from tools.retrieval.catalogue import Catalogue
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.secrets.redaction import Redaction

if TYPE_CHECKING:  # loaded on first use
    from tools.core.jobs import Jobs
    from tools.sandbox.history.history import CallHistory, History


class SandboxToolManager:
    """Executes calls: judges each, grants what its scope allows, audits it and returns a result."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        sandbox: Sandbox,  # for the scopes sandboxed, context and system
        library: Library,
        permissions: Permissions | None,  # None for the user at the keyboard, who may do anything
        machine: Machine | None = None,  # for the scope system; None rejects that scope
        history: Callable[[], History] | None = None,  # creates, once, the recorder of changes
        fitting: Fitting | None = None,  # previews large results; by default all stay whole
        collections: Collections | None = None,
        recording: Recording | None = None,  # in memory
        audit: Audit | None = None,
        # Awaited with an unknown name, to find tools that appeared just now.
        find_more: Callable[[str], Awaitable[None]] | None = None,
        catalogue: Catalogue | None = None,  # by default covers only the registry
        command: str = "toolcrib",  # as the user types it, for suggested actions
        redaction: Redaction
        | None = None,  # removes the values of secrets from results and records
        jobs: Jobs | None = None,  # None if calls cannot become jobs
    ) -> None:
        self._registry = registry
        self._sandbox = sandbox
        self._library = library
        self._permissions = permissions
        self._machine = machine
        self._history = history
        self._fitting = fitting or Fitting(ResultLimits(tokens=0))
        self._collections = collections or Collections()
        self._recording = recording
        self._audit = audit
        self._find_more = find_more
        self._turns = Turns()
        self._catalogue = catalogue or Catalogue(registry)
        self._words = Words(command)
        self._redaction = redaction or Redaction()
        self._jobs = jobs

    async def execute(
        self, name: str, arguments: Mapping[str, Any], context: RequestContext
    ) -> ToolResult:
        """Runs one call, and records it before returning.

        Every failure becomes a result; only cancellation propagates. A result that is too large is
        replaced by a preview.
        """
        result, _ = await self._executed(name, arguments, context)
        return result

    async def _executed(
        self,
        name: str,
        arguments: Mapping[str, Any],
        context: RequestContext,
        *,
        is_whole: bool = False,
    ) -> Made:
        """Runs one call and returns its result or failure, fitted unless `is_whole`."""
        if not context.session_id:
            context = replace(context, origin=replace(context.origin, session_id=uuid.uuid4().hex))
        own = self._registry.of(context.identity.user_id)
        call = Call(name, arguments, context, own.get)
        result: ToolResult | None = None
        is_final = True
        try:
            result = await self._take_path(call, is_whole=is_whole)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the caller gets any failure of a tool as a result
            is_final = not isinstance(only_cause(error), AnswersAwaitedError)  # else it is repeated
            secrets = call.secrets
            failure = as_tool_error(
                error, name, lambda text: self._redaction.text(secrets.text(text))
            )
            masked = secrets.mask_failure(ToolResult.failure(failure, self._words))
            result = self._redaction.result(masked)
        finally:  # cancelled calls are recorded too
            await self._close(call, result, is_final=is_final)
        return result, is_final

    async def execute_batch(
        self, calls: Sequence[ToolCall], context: RequestContext
    ) -> list[ToolResult]:
        """Runs several calls, each as `execute` does, in the order of `run_batch`."""

        async def make(call: ToolCall) -> Made:
            return await self._executed(call.name, call.arguments, context)

        return await run_batch(calls, self._writes, make)

    def unrecorded(self) -> SandboxToolManager:
        """Returns the same path for bulk work: its calls are not recorded in memory."""
        path = copy(self)
        path._recording = None  # noqa: SLF001  # of the same class
        return path

    def over(self, sandbox: Sandbox) -> SandboxToolManager:
        """Returns the same path over other files."""
        path = copy(self)
        path._sandbox = sandbox  # noqa: SLF001  # of the same class
        return path

    def worded(self, words: Words) -> SandboxToolManager:
        """Returns the same path with other words for suggested actions."""
        path = copy(self)
        path._words = words  # noqa: SLF001  # of the same class
        return path

    async def _take_path(self, call: Call, *, is_whole: bool) -> ToolResult:
        """Takes the steps of a call, in order; what it raises is its failure."""
        await self._find(call)
        check_depth(call.name, call.context)
        await self._complete(call)
        if self._permissions is not None:
            await self._permissions.obtain(call, self._files)
        if call.context.tool_set is not None and not call.spec.is_proxy:
            call.context.tool_set.take(call.context.session_id)
        result = await self._carry(call)
        return await self._present(call, result, is_whole=is_whole)

    async def _find(self, call: Call) -> None:
        """Finds the tool, which its caller may call, and renames the arguments to its schema's."""
        context, user_id = call.context, call.context.identity.user_id
        found = call.find(call.name)
        if found is None and self._find_more is not None:
            await self._find_more(call.name)
            call.find = self._registry.of(user_id).get
            found = call.find(call.name)
        if found is None:  # the catalogue explains why
            look = partial(self._catalogue.find, call.name, context.tool_set, user_id)
            found = await anyio.to_thread.run_sync(look)
        if found.source == "builtin" and isinstance(call.arguments, Mapping):
            # Under our own name, only arguments that are not ours can mean something else.
            ours = found.input_schema.get("properties", {}).keys()
            is_ours = call.name == found.name and call.arguments.keys() <= ours
            meant = None if is_ours else translated(call.name, call.arguments)
            if meant is not None:
                named, found = found, call.find(meant[0]) or found
                call.named = named if named is not found else None
                call.arguments = meant[1]
        call.found, call.arguments = found, found.canonical(call.arguments)
        check_admitted(found, context.tool_set)
        if call.named is not None and context.tool_set is not None:
            check_admitted(call.named, replace(context.tool_set, allow=()))

    async def _complete(self, call: Call) -> None:
        """Checks the arguments, and has the tool complete a call that does not say everything."""
        spec, context = call.spec, call.context
        call.checked = spec.validate(call.arguments)
        if context.link.carrier is not None and may_last(spec, call.checked, call.find):
            context.link.carrier.may_last(spec.name)  # first, since the client is already waiting
        if spec.prepare is not None:
            granted = context.granted(Grant(sandbox=self._sandbox, machine=self._machine))
            call.arguments, call.shown = await spec.prepare(call.checked, granted)
            call.checked = spec.validate(call.arguments)

    async def _carry(self, call: Call) -> ToolResult:
        """Runs the tool, in the care of the client's request if it must not run twice."""
        context, spec, run = call.context, call.spec, partial(self._run, call)
        if context.link.carrier is not None and spec.resumable:
            return await context.link.carrier.carry(context, spec.name, call.arguments, run)
        return await run(context)  # most can be run again; other servers keep their own running

    async def _present(self, call: Call, result: ToolResult, *, is_whole: bool) -> ToolResult:
        """Removes secrets from a result, and fits it unless it must stay whole."""
        if self._redaction.is_needed:
            result = self._redaction.result(result)
        if result.is_error:  # from a function file, which validates arguments itself
            result = call.secrets.mask_failure(result)
        limit = 0 if is_whole else self._fitting.limits.exceeded(result, call)
        if is_whole or not (limit or result.media or result.blocks):
            return result
        return await self._fitting.fit(result, call, limit)

    async def _run(self, call: Call, context: RequestContext) -> ToolResult:
        """Runs the tool until its deadline, which counts from its turn, not from its request.

        While a question is open, the deadline pauses and the slot is free. The call is judged again
        if the policy changed while it waited for its turn.
        """
        spec, permission = call.spec, call.permission
        turn = self._turns.of(spec, context.identity.user_id)

        async def invoke(running: RequestContext) -> ToolResult:
            return await spec.invoke(call.checked, self._grant(call, running, turn))

        async with turn:
            while permission.renew and not permission.holds():
                async with turn.lent():
                    await permission.renew(context)
            return await in_time(spec.name, spec.timeout, context, invoke, meanwhile=turn.lent)

    async def _close(self, call: Call, result: ToolResult | None, *, is_final: bool) -> None:
        """Uses the approval up and records the call, unless it will be repeated."""
        if self._permissions is not None:
            await self._permissions.close(call.permission, is_final=is_final)
        secrets, context = call.secrets, call.context
        given, name = secrets.arguments, call.name
        if self._redaction.is_needed:
            given, name = self._redaction.value(given), self._redaction.text(name)
        finished = FinishedCall(
            call,
            name,
            given if isinstance(given, Mapping) else {},
            secrets.recorded(result),
            time.perf_counter() - call.clock,
        )
        if self._audit is not None:
            self._audit.keep(finished, is_final=is_final)
        if self._recording is not None and is_final:
            await self._recording.keep(finished)
        has_searched = self._catalogue.learning is not None  # else no search found the tool
        if has_searched and call.found is not None and result is not None and is_final:
            await self._catalogue.served(call.found, result, context.identity, context.session_id)

    def _grant(self, call: Call, context: RequestContext, turn: Turn) -> RequestContext:
        spec, permission = call.spec, call.permission
        if context.loop is not None and not spec.is_proxy:
            context = replace(context, loop=context.loop.within(spec, spec.name))
        if spec.scope is ToolScope.MCP:
            return context.granted(Grant())
        sandbox = self._files(permission)
        history: Callable[[], CallHistory] | None = None
        if self._history is not None and (spec.scope is ToolScope.CONTEXT or not spec.read_only):
            caller = Caller(call.id, context.identity, context.session_id, spec.name)
            history = cache(partial(self._history().of, caller))
            if not spec.read_only:
                sandbox = sandbox.recorded(history())
        nested = partial(self._nested, call, turn)
        batch = partial(self._nested_batch, call, turn)
        room = self._fitting.limits.page(spec.name, context.tool_set)
        calls = Calls(self._catalogue, batch, room, self._fitting.kept, self._jobs)
        match spec.scope:
            case ToolScope.SANDBOXED:
                grant = Grant(
                    sandbox=sandbox,
                    searching=self._machine,
                    call=nested,
                    calls=calls if spec.owner else None,  # a created tool is a program
                )
            case ToolScope.CONTEXT:
                grant = Grant(
                    sandbox=sandbox,
                    library=self._library,
                    call=nested,
                    calls=calls,
                    collections=self._collections,
                    history=history,
                )
            case ToolScope.SYSTEM:
                if self._machine is None:
                    raise PermissionDeniedError(f"{spec.name} cannot run programs here.")
                grant = Grant(
                    sandbox=sandbox,
                    machine=self._machine,
                    reach=permission.reach,
                    history=history,
                    call=nested,
                    calls=calls,
                    accepted=permission.accepted,
                )
        return context.granted(grant)

    def _files(self, permission: Permission) -> Sandbox:
        """Returns the files, restricted by the policy's rules for one call."""
        places = permission.places
        return self._sandbox if places is None else self._sandbox.ruled(places, self._accepting)

    def _accepting(self, path: str, content: bytes) -> AbstractContextManager[None]:
        """Opens a context for writing a file that programs obey; none of them can undo it."""
        if self._machine is None:
            return nullcontext()
        return self._machine.processes.protection.accepting(path, content)

    async def _nested(
        self,
        caller: Call,
        turn: Turn,
        context: RequestContext,
        name: str,
        arguments: Mapping[str, Any],
    ) -> ToolResult:
        caller.permission.passed_on = True
        call, is_whole = ToolCall(name, arguments), not caller.spec.is_proxy
        async with turn.lent():
            result, _ = await self._once(call, context, is_whole=is_whole)
        return result

    async def _nested_batch(
        self, caller: Call, turn: Turn, context: RequestContext, calls: Sequence[ToolCall]
    ) -> list[ToolResult]:
        caller.permission.passed_on = True

        async def make(call: ToolCall) -> Made:
            return await self._once(call, context, is_whole=True)

        async with turn.lent():
            results = await run_batch(calls, self._writes, make)
        if not caller.spec.is_proxy:
            return results
        return await self._fitting.share(results, caller)

    async def _once(self, call: ToolCall, context: RequestContext, *, is_whole: bool) -> Made:
        """Makes a nested call, unless an earlier run of its caller has its result.

        The result stays whole for code, and is fitted for a model.
        """
        make = partial(self._executed, is_whole=is_whole)
        carrier = context.link.carrier
        repetition = None if carrier is None else carrier.repetition
        if repetition is None:
            return await make(call.name, call.arguments, context)
        nested = repetition.begin(call.name, call.arguments, context.identity)
        if (before := repetition.result_of(nested)) is not None:
            return before, True
        context = replace(context, place=nested)
        result, is_final = await make(call.name, call.arguments, context)
        if is_final:
            repetition.finish(nested, result)
        return result, is_final

    def _writes(self, call: ToolCall) -> bool:
        spec = self._registry.get(call.name)  # an unknown tool may appear later, and write
        return spec is None or not spec.effects.isdisjoint({Effect.WRITE, Effect.EXECUTE})
