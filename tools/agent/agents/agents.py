"""The agents we delegate to: isolates, limits and records each run, and cleans up after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from storage.agent.delegations import Ceilings, Delegation, NewDelegation, ToolPatterns
from storage.errors import StorageError
from storage.locks import Presence
from tools.agent.agents.agent import Agent
from tools.agent.agents.programs import Errand, run_program
from tools.agent.agents.reports import (
    Outcome,
    Report,
    WorktreeReport,
    begin_log,
    close_lost,
    event_of,
    log_of,
)
from tools.conversion.arguments.validation_errors import nearest
from tools.conversion.naming import SEPARATOR
from tools.core.errors import (
    DeadlineError,
    InvalidArgumentsError,
    ToolError,
    UnavailableError,
    UpstreamError,
)
from tools.core.toolset import OFF_ROOT, ToolSet
from tools.core.unicode_safety import visible_controls

if TYPE_CHECKING:
    from storage.library import Library
    from tools.agent.agents.worktrees import Worktree, Worktrees
    from tools.core.context import RequestContext
    from tools.sandbox.processes.processes import Processes

DELEGATING = ("delegate_task", "delegate_to_agent")
ELSEWHERE = ("tag:files", "bash", "bash_*", "execute_python_code", "run_code")
"""Tools an agent in a worktree is not offered: all of them would refuse it (`OFF_ROOT`)."""

FAILURE_CHARACTERS = 2_000  # of an agent's output that a failure repeats

Serve = Callable[[Delegation, str, ToolSet], AbstractAsyncContextManager[str]]
"""Serves Toolcrib to one agent, for its token only; yields the address, `host:port`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one run of an agent takes place."""

    agent: Agent
    root: Path  # the directory it works in
    address: str  # the address of its Toolcrib, `host:port`
    readable: tuple[Path, ...] = ()  # other paths it may read
    prefix: str = "."  # the path of the settings' root inside `root`


@dataclass(frozen=True, kw_only=True)
class Agents:
    """Delegates tasks to the agents in the settings."""

    agents: Mapping[str, Agent]  # by name
    library: Library
    ceilings: Ceilings  # combined limits of all delegations with the same root delegation
    serve: Serve
    processes: Callable[[Place], Processes]  # creates the process runner of a run
    worktrees: Callable[[], Worktrees]  # creates the git worktrees, on first use
    root: Path
    place: Path  # the parent directory of all worktrees
    installed: Callable[[], list[str]]  # lists the presets whose programs are installed; blocks

    def find(self, name: str) -> Agent:
        """Returns the agent with this name."""
        self.check_any()
        if name in self.agents:
            return self.agents[name]
        meant = nearest(name, self.agents)
        raise InvalidArgumentsError(
            f"There is no agent {name!r}; there are: {', '.join(self.agents)}.",
            suggestions=[meant] if meant else [],
            next_actions=["Name one of them, or leave the choice to delegate_task."],
        )

    def check_any(self) -> None:
        """Raises an error if no agents are configured."""
        if self.agents:
            return
        found = self.installed()
        there = f" (installed here: {', '.join(found)})" if found else ""
        raise UnavailableError(
            "No agent is configured, so nothing can be delegated.",
            next_actions=[
                (
                    f'Ask the user to add a table [agents.NAME] to the settings, with preset = "'
                    f'{found[0] if found else "claude-code"}"{there}, with command = [...], or with'
                    " server and tool; docs/delegation.md shows each."
                ),
                "Until then, do the work yourself.",
            ],
        )

    async def delegate(self, name: str, task: str, context: RequestContext) -> Report:
        """Gives a task to an agent and waits for its answer."""
        agent = self.find(name)
        parent = await anyio.to_thread.run_sync(
            self.library.delegations.of_session, context.session_id
        )
        depth = 1 if parent is None else parent.depth + 1
        inner = DELEGATING if depth >= self.ceilings.depth else ()
        inherited: Worktree | None = None
        if context.origin.is_off_root and not agent.worktree:
            inherited = await self._inherited_worktree(context.session_id)
        outer = (OFF_ROOT, *ELSEWHERE) if agent.worktree else ()
        deny = (*agent.deny, *inner, *outer)
        tools = ToolSet(f"agent {name}", agent.allow, deny, context.tool_set)
        new = NewDelegation(
            agent=name,
            identity=context.identity,
            session_id=context.session_id,
            tools=tuple(_patterns(tools)),
            seconds=agent.seconds,
            cost=agent.cost,
        )
        begun, token, presence = await anyio.to_thread.run_sync(self._begin, new, task)
        outcome = Outcome()
        try:
            async with context.aside():
                outcome = await self._outcome(agent, task, begun, token, tools, context, inherited)
        except ToolError as error:
            outcome = Outcome(state="failed", notes=(error.message,))
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await context.machine.end_session(begun.identity.user_id, begun.session_id)
                await context.jobs.end_session(begun.session_id)
                ended, event_id = await anyio.to_thread.run_sync(self._keep, begun, task, outcome)
                presence.end()
        return _report(ended, outcome, event_id)

    def _begin(self, new: NewDelegation, task: str) -> tuple[Delegation, str, Presence]:
        """Records the start of a delegation by this process; blocks."""
        close_lost(self.library, self.place)
        begun, token = self.library.delegations.begin(new, self.ceilings)
        presence = Presence(self.library.directory / "processes", begun.id)
        presence.begin()
        begin_log(self.library, begun, task)
        return begun, token, presence

    async def _inherited_worktree(self, session_id: str) -> Worktree:
        """Returns the worktree of the delegating agent, for an agent without its own."""
        worktrees = await anyio.to_thread.run_sync(self.worktrees)
        ledger = self.library.delegations
        each = await anyio.to_thread.run_sync(ledger.of_session, session_id)
        while each is not None:
            if OFF_ROOT in each.tools[-1][2]:
                return await anyio.to_thread.run_sync(worktrees.existing, each.session_id)
            each = await anyio.to_thread.run_sync(ledger.find, each.parent)
        raise UnavailableError("The worktree of the agent that delegates is not there any more.")

    async def _outcome(
        self,
        agent: Agent,
        task: str,
        begun: Delegation,
        token: str,
        tools: ToolSet,
        context: RequestContext,
        inherited: Worktree | None,
    ) -> Outcome:
        if agent.server:
            return await _ask_tool(agent, _prompt(task), begun, context)
        async with (
            self.serve(begun, token, tools) as address,
            self._workplace(agent, begun, address, inherited) as (worktree, processes),
        ):
            errand = Errand(
                agent=agent,
                begun=begun,
                prompt=_prompt(task),
                url=f"http://{address}/mcp",
                token=token,
                worktree=worktree or inherited,
                watch=context.watch() if worktree is None else None,
                log=log_of(self.library, begun),
                accepted=context.grant.accepted,
            )
            outcome = await run_program(processes, errand, context.report_progress)
        return replace(outcome, worktree=_changed(worktree))  # which was checked at its end

    @asynccontextmanager
    async def _workplace(
        self, agent: Agent, begun: Delegation, address: str, inherited: Worktree | None
    ) -> AsyncIterator[tuple[Worktree | None, Processes]]:
        """Prepares the agent's directory; yields its worktree, if any, and its process runner."""

        def make(worktree: Worktree | None) -> Processes:
            if worktree is None:
                return self.processes(Place(agent, self.root, address))
            at = (worktree.path, address, (worktree.common,), worktree.prefix)
            return self.processes(Place(agent, *at))

        if not agent.worktree:
            processes = make(inherited)
            try:
                yield None, processes
            finally:
                await processes.aclose()
            return
        worktrees = await anyio.to_thread.run_sync(self.worktrees)
        async with worktrees.open(begun.session_id, make) as opened:  # a name that it may see
            yield opened

    def _keep(self, begun: Delegation, task: str, outcome: Outcome) -> tuple[Delegation, str]:
        """Records the end of a delegation and stores its result as an event; blocks."""
        ended = self.library.delegations.finish(
            begun.id, cost=outcome.cost or 0.0, outcome=outcome.state
        )
        log_of(self.library, begun).unlink(missing_ok=True)
        try:
            kept = self.library.shelf(begun.identity).add(event_of(ended, task, outcome))
        except StorageError:
            return ended, ""
        return ended, kept.context.id


async def _ask_tool(
    agent: Agent, prompt: str, begun: Delegation, context: RequestContext
) -> Outcome:
    """Calls an agent that is a tool of another server, through the usual call pipeline."""
    name = f"{agent.server}{SEPARATOR}{agent.tool}"
    with anyio.move_on_after(begun.reserved_seconds):
        result = await context.result_of(name, {agent.parameter: prompt})
        return Outcome(
            state="failed" if result.is_error else "answered", answer=visible_controls(result.text)
        )
    return Outcome(state="timed_out")


def _prompt(task: str) -> str:
    """The prompt for an agent. It begins with a letter, so no task is parsed as an option."""
    return (
        f"Task: {task}\n\n"
        "Another agent asks this of you, and nobody can answer questions meanwhile. Answer with"
        " the result alone, and say so if you could not do it."
    )


def _changed(worktree: Worktree | None) -> WorktreeReport | None:
    if worktree is None or not worktree.is_kept:
        return None
    return WorktreeReport(
        path=str(worktree.path), base=worktree.base, diff=visible_controls(worktree.diff)
    )


def _patterns(tools: ToolSet | None) -> list[ToolPatterns]:
    """Returns the nested tool sets of a call, outermost first."""
    if tools is None:
        return []
    return [*_patterns(tools.within), (tools.name, tools.allow, tools.deny)]


def _report(ended: Delegation, outcome: Outcome, event_id: str) -> Report:
    if outcome.state != "answered":
        raise _failure(ended, outcome)
    return Report(
        delegation_id=ended.id,
        agent=ended.agent,
        answer=outcome.answer,
        seconds=round(ended.seconds or 0, 1),
        cost=outcome.cost,
        log=outcome.log,
        agent_session=outcome.agent_session or None,
        sandbox=outcome.sandbox or None,
        worktree=outcome.worktree,
        event_id=event_id or None,
        session_id=ended.session_id,
        notes=list(outcome.notes),
    )


def _quote(name: str, text: str) -> str:
    if len(text) > FAILURE_CHARACTERS:
        text = f"…{text[-FAILURE_CHARACTERS:]}"
    return "\n> ".join([name, *text.splitlines()]) if text.strip() else ""


def _failure(ended: Delegation, outcome: Outcome) -> UpstreamError | DeadlineError:
    parts = list(outcome.notes)
    if outcome.worktree is not None:
        parts.append(f"What it changed is in {outcome.worktree.path}.")
    quotes = (_quote("Its words:", outcome.answer), _quote("Its errors:", outcome.log))
    said = "\n".join(filter(None, quotes)) or "It said nothing."
    told = " ".join([*parts, said])
    if outcome.state == "timed_out":
        return DeadlineError(
            f"{ended.agent} was ended after {ended.seconds:.0f} s with all it started. {told}",
            next_actions=["Delegate less at once, or do it yourself."],
        )
    code = "" if outcome.exit_code is None else f" (exit code {outcome.exit_code})"
    return UpstreamError(
        f"{ended.agent} failed{code}. {told}",
        next_actions=["Delegate it in other words or to another agent, or do it yourself."],
    )
