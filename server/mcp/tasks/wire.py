"""How tasks are shown in the protocol.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import mcp_types as types

from server.mcp.wire import wire_form
from storage.agent.jobs import KEPT_SECONDS, JobRecord, JobState
from tools.core.invisible import encodable
from tools.core.jobs.job import answer_in

POLL_MS = 1_000
"""How often a client should look."""


def created(record: JobRecord) -> dict[str, Any]:
    """What a call is answered that goes on as a task."""
    return {"resultType": "task", **_task(record, "working")}


def detailed(record: JobRecord, asked: Mapping[str, types.InputRequest]) -> dict[str, Any]:
    """How far a task is, with what it asks or what came of it.

    Args:
        record: What is kept of it.
        asked: What its client has to answer, where that can be asked here.
    """
    if record.state is JobState.WORKING:
        if not asked:
            return _task(record, "working")
        requests = {key: wire_form(each) for key, each in asked.items()}
        return {**_task(record, "input_required"), "inputRequests": requests}
    if record.state is JobState.CANCELLED:
        return _task(record, "cancelled")
    answer = answer_in(record) or {"error": _internal(record)}
    return {**_task(record, "failed" if "error" in answer else "completed"), **answer}


def _task(record: JobRecord, status: str) -> dict[str, Any]:
    last = record.ended or record.progress.heard
    said = f"It waits for an answer: {record.awaits}" if record.awaits else record.progress.message
    task = {
        "taskId": record.id,
        "status": status,
        "createdAt": _instant(record.began),
        "lastUpdatedAt": _instant(last),
        "ttlMs": int(((record.ended or time.time()) - record.began + KEPT_SECONDS) * 1_000),
        "pollIntervalMs": POLL_MS,
    }
    return {**task, "statusMessage": encodable(said)} if said else task


def _internal(record: JobRecord) -> dict[str, Any]:
    lost = record.state is JobState.LOST
    said = "The process that worked on it ended." if lost else "It failed."
    return {"code": types.INTERNAL_ERROR, "message": said}


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
