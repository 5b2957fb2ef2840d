"""Summaries of sessions, written by a model where there is one, else by extraction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import anyio.to_thread
from pydantic import Field, ValidationError

from storage.models import Context
from tools.answers.managed_memory import SessionSummary
from tools.answers.summaries import MOST_WRITTEN, summary_prompt, written_by
from tools.core.client import ProgressReporter, Prompt, Reply, Sampler
from tools.core.result import ToolModel

if TYPE_CHECKING:  # loaded on first use
    from storage.memory.memories import Memories
    from storage.memory.summaries import DueSession

__all__ = ["SessionBuild"]


class _Earlier(ToolModel):
    """What earlier rounds of the same call wrote; it comes back from the client."""

    written: Annotated[list[SessionSummary], Field(max_length=MOST_WRITTEN)] = Field(
        default_factory=list
    )


class SessionBuild:
    """One summing up of the sessions that are due.

    Args:
        memories: Whose.
        sampler: The way to a model; None writes by extraction.
        report_progress: Told (done, total).

    Attributes:
        refusals: How often the model was asked and gave nothing to use.
    """

    def __init__(
        self, memories: Memories, sampler: Sampler | None, report_progress: ProgressReporter
    ) -> None:
        self._memories = memories
        self._sampler = sampler
        self._report = report_progress
        self._written = [] if sampler is None else _earlier(sampler.state).written
        self.refusals = 0

    async def run(self, named: Sequence[str], but: str) -> tuple[list[SessionSummary], int]:
        """Writes what is due.

        Args:
            named: Only these sessions, ended or not; empty means all that ended.
            but: The session that goes on.

        Returns:
            What was written, and how many sessions are still due.

        Raises:
            AnswersAwaitedError: If the client has to ask its model first.
            StorageUnavailableError: If the record or the embedder fails; what was written stays.
        """
        room = MOST_WRITTEN - len(self._written)
        sessions, left = await anyio.to_thread.run_sync(
            partial(self._memories.due_sessions, room, named=named, but=but)
        )
        step = 1 if self._sampler is None else self._sampler.at_once
        for start in range(0, len(sessions), step):
            due = sessions[start : start + step]
            await self._report(start, len(sessions), f"{due[0].title} is summed up")
            for one, reply in zip(due, await self._ask(due), strict=True):
                await self._write(one, reply)
        return self._written, left

    async def _ask(self, due: Sequence[DueSession]) -> Sequence[Reply | None]:
        if self._sampler is None or self.refusals:  # who said no once is not asked on
            return [None] * len(due)
        state = _Earlier(written=self._written).model_dump_json()
        replies = await self._sampler.ask([_prompt(one) for one in due], state=state)
        self.refusals += sum(reply is None for reply in replies)
        return replies

    async def _write(self, due: DueSession, reply: Reply | None) -> None:
        from storage.events.extractive import EXTRACT_CHARACTERS, EXTRACTIVE

        if reply is None or self._sampler is None:
            summarizer = EXTRACTIVE
            text = await anyio.to_thread.run_sync(self._memories.extract, due, EXTRACT_CHARACTERS)
        else:
            text, summarizer = written_by(self._sampler, reply)
        kept = await anyio.to_thread.run_sync(partial(self._memories.keep, due, text, summarizer))
        if kept is not None:  # else more has happened meanwhile: the next call writes it
            self._written.append(_told(kept))


def _told(kept: Context) -> SessionSummary:
    return SessionSummary(id=kept.id, title=kept.title, summarizer=kept.metadata["summarizer"])


def _earlier(state: str) -> _Earlier:
    """What a client handed back; what is none of ours counts as nothing."""
    try:
        return _Earlier.model_validate_json(state or "{}")
    except ValidationError:
        return _Earlier()


def _prompt(due: DueSession) -> Prompt:
    return summary_prompt(f"this session of a person with an assistant: {due.title}", due.parts)
