"""The wire form of tasks.

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
"""Recommended poll interval for clients."""


def created(record: JobRecord) -> dict[str, Any]:
    """Returns the answer to a call that continues as a task."""
    return {"resultType": "task", **_task(record, "working")}


def detailed(record: JobRecord, asked: Mapping[str, types.InputRequest]) -> dict[str, Any]:
    """Returns the state of a task, with its questions or its result."""
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
    said = "The process that ran it ended." if lost else "It failed."
    return {"code": types.INTERNAL_ERROR, "message": said}


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
