"""Calls that work until they are told to end, for the tests of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from storage.agent.jobs import JobRecord
from storage.models import Identity
from tools.core.jobs import Job, Jobs, Outcome
from tools.core.result import ToolResult

ANN = Identity("ann")


@dataclass
class Asking:
    """What a call asks: nothing, or what its client answers while it waits."""

    is_with_client: bool = False
    awaits: str = ""
    open_questions: Mapping[str, object] = field(default_factory=dict)

    def leave(self) -> Asking:
        return self

    def answer(self, _answers: dict[str, object]) -> None:
        raise AssertionError("It asks nothing.")

    async def put(self, _relay: object) -> bool:
        raise AssertionError("It asks nothing.")


@dataclass
class Call:
    """A call that works until it is told to end."""

    job: Job
    ripe: anyio.Event = field(default_factory=anyio.Event)

    async def work(self) -> Outcome:
        self.job.may_last("grow")
        await self.job.report(1, 4, "sown")
        await self.ripe.wait()
        result = ToolResult({"plant": "Kale"}, "Kale is ripe.")
        return Outcome(result, result, dict)


async def unheard(_done: float, _total: float | None, _message: str | None) -> None:
    await anyio.lowlevel.checkpoint()


def call_of(identity: Identity = ANN, *, is_with_client: bool = False) -> Call:
    return Call(Job(identity, "home", Asking(is_with_client=is_with_client), unheard))


async def begun(jobs: Jobs, identity: Identity = ANN) -> tuple[Call, JobRecord]:
    """A call that goes on alone."""
    call = call_of(identity)
    record = await jobs.patiently(call.job, call.work, 0)
    assert record is not None
    return call, record
