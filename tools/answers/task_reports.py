"""Reports on tasks: the progress and the result of a call in the background."""

from __future__ import annotations

import json
import time
from typing import Any, Literal, Self

from pydantic import ConfigDict, FiniteFloat, PrivateAttr

from storage.agent.jobs import JobRecord, JobState
from tools.core.content import EmbeddedResource, Media
from tools.core.jobs import result_in
from tools.core.result import OmitNone, ToolModel

LONGEST_WAIT = 45  # limit on the seconds that `get_task` waits

_ENDED = {
    JobState.COMPLETED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "was cancelled",
    JobState.LOST: "was lost: the process that worked on it ended",
}


class TaskReport(ToolModel):
    """The state of a task.

    Attributes:
        task_id: Its ID.
        tool: The tool that runs.
        state: Its state.
        seconds: How long it has been running, or ran.
        done: Units of work done.
        total: Total units.
        message: Its latest progress message.
        heard_seconds_ago: Age of that message.
        awaits: What a person or a model must answer first.
        result: The result of the call, once finished.
        media: Images, sounds and resources, which are not part of the result.
        next_actions: What to do next.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    task_id: str
    tool: str
    state: Literal["working", "completed", "failed", "cancelled", "lost"]
    seconds: FiniteFloat
    done: OmitNone[FiniteFloat] = None
    total: OmitNone[FiniteFloat] = None
    message: OmitNone[str] = None
    heard_seconds_ago: OmitNone[FiniteFloat] = None
    awaits: OmitNone[str] = None
    result: OmitNone[dict[str, Any]] = None
    media: OmitNone[list[Media | EmbeddedResource]] = None
    next_actions: list[str]
    _text: str = PrivateAttr(default="")

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        """Converts the record of a task."""
        result = result_in(record)
        now, said = time.time(), record.progress
        works = record.state is JobState.WORKING
        has_news = bool(said.message) or said.done is not None
        report = cls(
            task_id=record.id,
            tool=record.tool,
            state=record.state.value,
            seconds=round((record.ended or now) - record.began, 1),
            done=said.done,
            total=said.total,
            message=said.message or None,
            heard_seconds_ago=round(now - said.heard, 1) if works and has_news else None,
            awaits=record.awaits or None,
            result=None if result is None else result.structured,
            media=None if result is None else list(result.media) or None,
            next_actions=_next_actions(record),
        )
        report._text = "" if result is None else result.text
        return report

    def to_text(self) -> str:
        """Formats two or three lines for the model, and the result."""
        if self.state == "working":
            so_far = f"{self.seconds:g} s so far{self._news}"
            head = f"{self.tool} goes on as task {self.task_id}, {so_far}"
        else:
            ended = _ENDED[JobState(self.state)]
            head = (
                f"Task {self.task_id} ({self.tool}) {ended}, after {self.seconds:g} s{self._news}"
            )
        waits = [f"It waits for an answer: {self.awaits}"] if self.awaits else []
        lines = [f"{head}.", *waits, *(f"Next: {each}" for each in self.next_actions)]
        return "\n".join([*lines, *([self._text] if self._text else [])])

    @property
    def _news(self) -> str:
        if self.message is None and self.done is None:
            return ""
        has_share = self.done is not None and (self.total is not None or not self.message)
        share = f"{self.done:g}" if has_share else ""
        share += "" if self.total is None else f" of {self.total:g}"
        said = json.dumps(self.message, ensure_ascii=False) if self.message else ""
        said = ", ".join(filter(None, [share, said]))
        when = f" ({self.heard_seconds_ago:g} s ago)" if self.heard_seconds_ago is not None else ""
        return f": {said}{when}"


def _next_actions(record: JobRecord) -> list[str]:
    if record.state is JobState.LOST:
        places = (
            "Of an agent: its last message names its worktree and its log, which stay;"
            " `toolcrib worktrees` lists them, and query finds its event."
        )
        again = "Look at what it did until then, then make the call again if it is needed."
        return [*([places] if record.tool.startswith("delegate_") else []), again]
    if record.state is not JobState.WORKING:
        return []
    if record.awaits:
        return [
            "Tell the user, who is asked when a client that shows forms calls get_task.",
            "What is to be allowed can be allowed with `toolcrib approvals` in a terminal as well.",
        ]
    return [
        f"Call get_task with this task_id; it waits up to {LONGEST_WAIT} s for the end.",
        "Or do something else meanwhile, or end it with cancel_task.",
        "If these two are not listed, call them through call_tool.",
    ]
