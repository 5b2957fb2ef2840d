"""Agents that are programs: runs one task with its own Toolcrib and private home."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from tools.agent.agents.agent import TOKEN_VARIABLE, URL_VARIABLE, Agent, Reply, fill
from tools.agent.agents.reports import Outcome
from tools.core.audit.secret_patterns import redacted_text
from tools.core.errors import UnavailableError
from tools.core.unicode_safety import encodable, visible_controls
from tools.sandbox.processes.models import Command, Level, Watch
from tools.sandbox.processes.output import Capture, communicate

if TYPE_CHECKING:
    from storage.agent.delegations import Delegation
    from tools.agent.agents.worktrees import Worktree
    from tools.core.client import ProgressReporter
    from tools.sandbox.processes.processes import Processes


PRINTED_BYTES = 4_000_000
"""Limit on an agent's standard output, which holds its answer and a trace of its work."""

LOGGED_BYTES = 4_000  # limit on an agent's standard error
REPORT_SECONDS = 5.0  # interval between progress reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One run of an agent."""

    agent: Agent
    begun: Delegation
    prompt: str  # its task; begins with a letter
    url: str  # the address of its Toolcrib
    token: str
    worktree: Worktree | None  # where it works; None for the root
    watch: Watch | None  # observes its changes to files, if set
    log: Path  # file that holds its standard error while it runs
    accepted: frozenset[str]  # unenforceable rules that the user let it run without


async def run_program(processes: Processes, errand: Errand, report: ProgressReporter) -> Outcome:
    """Runs an agent to completion; leaves no process behind, even on an error."""
    level = await processes.level()
    command = await anyio.to_thread.run_sync(_command, errand, level)
    printed, log = Capture(PRINTED_BYTES), Capture(LOGGED_BYTES)
    running = await processes.start(command)
    with errand.log.open("ab", buffering=0) as file:

        def feed(data: bytes) -> None:
            log.feed(data)
            if log.size <= PRINTED_BYTES:
                file.write(data.replace(errand.token.encode(), b"[token]"))

        async with anyio.create_task_group() as group:
            group.start_soon(_report, errand, report, lambda: printed.size + log.size)
            sinks = [processes.secrets.redaction.sink(each) for each in (printed.feed, feed)]
            feeds = (each.feed for each in sinks)
            done = await communicate(running, *feeds, seconds=errand.begun.reserved_seconds)
            group.cancel_scope.cancel()
        for each in sinks:
            each.flush()
    printed_text, written = (
        each.excerpt(limit).text.replace(errand.token, "[token]")
        for each, limit in ((printed, PRINTED_BYTES), (log, LOGGED_BYTES))
    )
    own = f"agents.{errand.agent.name}"
    notes = running.notes
    if done.exit_code and not done.timed_out:
        notes += processes.explain(running, done.exit_code, written)
    notes = tuple(  # naming the agent's own settings
        note.replace("system.network", f"{own}.hosts").replace("system.readable", f"{own}.readable")
        for note in notes
    )
    reply = errand.agent.reply
    answer = read_answer(printed_text, reply)
    if not (answer.is_found or done.exit_code):
        notes += (f"No answer was found at {reply.answer!r} in what it printed; all is here.",)
    log_text = visible_controls(written)
    return Outcome(
        state="timed_out" if done.timed_out else "failed" if done.exit_code else "answered",
        answer=visible_controls(answer.text),
        log=redacted_text(log_text, len(log_text)),
        cost=answer.cost,
        agent_session=visible_controls(answer.session),
        exit_code=done.exit_code,
        sandbox=str(running.level),
        notes=notes,
    )


def _command(errand: Errand, level: Level) -> Command:
    """Builds the command of a run, including the files from the user's home; blocks."""
    agent = errand.agent
    values = {
        "prompt": errand.prompt,
        "url": errand.url,
        "mcp_config": mcp_config(errand.url),
        "cost": f"{errand.begun.reserved_cost:g}",
    }
    held = agent.free if level is Level.NONE else agent.confined
    words = (*agent.argv, *held, *(agent.budget if errand.begun.reserved_cost else ()))
    takes_argument = any("{prompt}" in word for word in words)
    texts = {name: fill(text, values).encode() for name, text in agent.files.items()}
    return Command(
        argv=tuple(fill(word, values) for word in words),
        cwd="." if errand.worktree is None else errand.worktree.prefix,
        environment={TOKEN_VARIABLE: errand.token, URL_VARIABLE: errand.url},
        stdin=b"" if takes_argument else errand.prompt.encode(),
        session=("delegation", errand.begun.id),
        watch=errand.watch,
        accepted=errand.accepted,
        home={**_credentials(agent), **texts},
    )


def _credentials(agent: Agent) -> Mapping[str, bytes]:
    """Reads the files of the user's home that the agent receives."""
    found = {}
    for path in agent.home:
        try:
            found[str(path.relative_to(Path.home()))] = path.read_bytes()
        except OSError as error:
            raise UnavailableError(
                f"{path}, which agents.{agent.name}.home names, cannot be read: {error.strerror}.",
                next_actions=["Ask the user to look at that setting."],
            ) from None
    return found


def mcp_config(url: str) -> str:
    """Returns an MCP configuration for the agent's Toolcrib; the token is in its environment."""
    headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
    return json.dumps(
        {"mcpServers": {"toolcrib": {"type": "http", "url": url, "headers": headers}}}
    )


async def _report(errand: Errand, report: ProgressReporter, size: Callable[[], int]) -> None:
    began = anyio.current_time()
    name = errand.agent.name
    place = f" in {errand.worktree.path}" if errand.worktree else ""
    while True:
        await anyio.sleep(REPORT_SECONDS)
        seconds = round(anyio.current_time() - began)
        said = f"{name} works for {seconds} s{place}, {size()} bytes of output, log {errand.log}"
        await report(seconds, None, said)


MOST_COST = 1e6  # limit in US dollars above which a reported cost is ignored


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an agent."""

    text: str  # its answer; the whole output if no answer was found in it
    cost: float | None = None  # US dollars; None if not reported
    session: str = ""  # the agent's own session ID; empty if not reported
    is_found: bool = True  # whether the answer was at the expected path


def read_answer(printed: str, reply: Reply) -> Answer:
    """Parses an agent's output; never fails.

    Of several JSON lines, the last one with an answer wins; costs are summed.
    """
    if not reply.answer:
        return Answer(printed.strip())
    documents = list(_documents(printed))
    texts = [encodable(text) for text in _at(documents, reply.answer) if isinstance(text, str)]
    costs = [
        cost
        for cost in _at(documents, reply.cost)
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MOST_COST
    ]
    sessions = [encodable(each) for each in _at(documents, reply.session) if isinstance(each, str)]
    return Answer(
        text=(texts[-1] if texts else printed).strip(),
        cost=sum(costs) if costs else None,
        session=sessions[-1][:200] if sessions else "",
        is_found=bool(texts),
    )


def _documents(printed: str) -> Iterator[object]:
    """Yields the JSON documents in a text: the whole text, or each line that parses."""
    for text in (printed, *printed.splitlines()):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        yield from found if isinstance(found, list) else [found]
        if text is printed:
            return


def _at(documents: list[object], path: str) -> Iterator[Any]:
    """Yields the value at a dotted path, from each document that has one."""
    for found in documents if path else ():
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None  # noqa: PLW2901  # one step down
        if found is not None:
            yield found
