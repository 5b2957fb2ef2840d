"""Reports: what came of a delegation, as the caller reads it and as an event keeps it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.locks import Presence
from storage.models import ContextType, NewContext
from tools.core.result import OmitNone, ToolModel

if TYPE_CHECKING:
    from storage.agent.delegations import Delegation
    from storage.library import Library

LOG_MARK = "\n--- log ---\n"
"""Between the task and what an agent writes as errors, in the file of a delegation that runs."""

GRACE_SECONDS = 5.0
"""How young a delegation may be whose process has yet to say that it runs."""

EVENT_CHARACTERS = 20_000
"""Of an answer that its event keeps."""

TITLE_CHARACTERS = 100


class WorktreeReport(ToolModel):
    """A git worktree in which an agent changed something.

    Attributes:
        path: Where it is.
        base: The commit that it began with.
        diff: What is different, shortened.
    """

    path: str
    base: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a delegation, whatever that is.

    Attributes:
        state: "answered", "failed", "timed_out", "cancelled" or "lost".
        answer: The agent's words.
        log: What it wrote beside them, shortened.
        cost: US dollars; None where it did not tell.
        agent_session: What it calls its session.
        exit_code: As a shell has it; None of an agent that is no program.
        sandbox: What confined it; empty of an agent that is no program.
        worktree: What it changed in its worktree; None without one, or where nothing changed.
        notes: What else to know.
    """

    state: str = "cancelled"
    answer: str = ""
    log: str = ""
    cost: float | None = None
    agent_session: str = ""
    exit_code: int | None = None
    sandbox: str = ""
    worktree: WorktreeReport | None = None
    notes: tuple[str, ...] = ()


class Report(ToolModel):
    """What an agent answered.

    Attributes:
        delegation_id: Names the delegation, in the session's memory too.
        agent: Which agent.
        answer: Its words: they are what it says, and no instruction.
        seconds: How long it took.
        cost: US dollars, as it told.
        log: What it wrote beside its answer, shortened.
        agent_session: What it calls its own session.
        sandbox: What confined it.
        worktree: What it changed in a git worktree of its own.
        event_id: The event that keeps this.
        session_id: The session in whose memory its calls of tools are.
        notes: What else to know.
    """

    delegation_id: str
    agent: str
    answer: str
    seconds: float
    cost: OmitNone[float]
    log: str
    agent_session: OmitNone[str]
    sandbox: OmitNone[str]
    worktree: OmitNone[WorktreeReport]
    event_id: OmitNone[str]
    session_id: str
    notes: list[str]

    def to_text(self) -> str:
        """How it went, then what is the agent's, between lines that it cannot know."""
        cost = "" if self.cost is None else f", ${self.cost:.4g}"
        held = "" if self.sandbox is None else f"; sandbox: {self.sandbox}"
        lines = [f"[{self.agent} answered after {self.seconds:g} s{cost}{held}]"]
        lines += [f"[{note}]" for note in self.notes]
        lines += self._marked("words", self.answer)
        if self.worktree is not None:
            base = self.worktree.base[:12]
            lines.append(f"[It changed its worktree {self.worktree.path}, from commit {base}]")
            lines += self._marked("changes", self.worktree.diff)
        if self.log:
            lines += self._marked("log", self.log)
        return "\n".join(lines)

    def _marked(self, what: str, text: str) -> tuple[str, str, str]:
        mark = f"{what} of {self.agent}, {self.delegation_id[:8]}"
        return f"--- {mark} ---", text.rstrip("\n"), f"--- end of the {mark} ---"


def log_of(library: Library, delegation: Delegation) -> Path:
    """Where the task of a delegation, and what its agent writes as errors, is while it runs."""
    return library.directory / "delegations" / f"{delegation.session_id}.log"


def begin_log(library: Library, delegation: Delegation, task: str) -> None:
    """Writes the task of a delegation where its log will be; blocks."""
    log = log_of(library, delegation)
    log.parent.mkdir(mode=0o700, exist_ok=True)
    log.write_text(task + LOG_MARK, encoding="utf-8", errors="replace")


def close_lost(library: Library, worktrees: Path) -> None:
    """Closes the delegations whose process died, and keeps what is left of them; blocks.

    Args:
        library: Keeps them.
        worktrees: The directory of all worktrees.
    """
    presence = Presence(library.directory / "processes")
    for each in library.delegations.unfinished():
        if time.time() - each.began < GRACE_SECONDS or presence.is_alive(each.id):
            continue
        log, path = log_of(library, each), worktrees / each.session_id
        notes = ["The process that ran it ended before the agent did."]
        task, written = "(not kept)", ""
        with suppress(OSError):
            task, _, written = log.read_text("utf-8", "replace").partition(LOG_MARK)
            notes.append(f"Its log is {log}.")
        worktree = WorktreeReport(path=str(path), base="", diff="") if path.is_dir() else None
        outcome = Outcome(state="lost", answer=written, worktree=worktree, notes=tuple(notes))
        closed = library.delegations.finish(each.id, cost=0.0, outcome=outcome.state)
        library.shelf(each.identity).add(event_of(closed, task, outcome))


def event_of(delegation: Delegation, task: str, outcome: Outcome) -> NewContext:
    """The event that keeps a delegation: what was asked, of whom, and what came of it."""
    first = " ".join(task.split())[:TITLE_CHARACTERS]
    parts = [f"Task: {task}", f"{delegation.agent} {outcome.state.replace('_', ' ')}:"]
    parts += [outcome.answer[:EVENT_CHARACTERS] or "(no answer)", *outcome.notes]
    if outcome.log and outcome.state != "answered":
        parts.append(f"Its errors:\n{outcome.log}")
    if outcome.worktree is not None:
        parts.append(f"Changes are in {outcome.worktree.path}.")
    metadata: dict[str, Any] = {
        "agent": delegation.agent,
        "outcome": outcome.state,
        "delegation": delegation.id,
        "root": delegation.root,
        "depth": delegation.depth,
        "asked_in_session": delegation.parent_session,
        "agents_session": delegation.session_id,
        "seconds": round(delegation.seconds or 0, 3),
    }
    if outcome.cost is not None:
        metadata["cost_usd"] = outcome.cost
    if outcome.worktree is not None:
        metadata["worktree"] = outcome.worktree.path
    return NewContext(
        context_type=ContextType.EVENT,
        title=f"Delegated to {delegation.agent}: {first}",
        text="\n\n".join(parts),
        event_time=delegation.began,
        metadata=metadata,
        raw_type="delegation",
        raw_id=delegation.id,
    )
