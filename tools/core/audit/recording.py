"""Records each call in the memory of the user it concerns.

Importance of an entry, 0 to 10: 2 for a call that only reads or fails, 4 for any other, 1 more if
it may remove or overwrite, and 5 for a message. Each earlier success with the same target in the
session adds 1, up to 3 (see `storage.memory.entries`).

No entry may reveal forgotten content. Calls on stored context (scope context) are therefore
recorded without their results. Calls that store keep their arguments only if the result names the
contexts, which the entry is then linked to. Calls that delete keep none.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from storage.memory.models import NewEntry
from storage.memory.recorder import Recorder
from storage.models import Identity
from storage.reading.shorten import clip
from tools.core.audit.redact import redacted, redacted_text
from tools.core.calling.call import CANCELLED, FinishedCall
from tools.core.context import Origin
from tools.core.errors import DeadlineError, PermissionDeniedError
from tools.core.spec import Effect, ToolScope, ToolSpec

PATIENCE = 1.0
"""Seconds that a result waits for its entry, which is then written in the background."""

READING = 2.0
CHANGING = 4.0
DESTRUCTIVE = 1.0
MESSAGE = 5.0

ACTION_CHARACTERS = 128
TARGET_CHARACTERS = 240
ARGUMENT_CHARACTERS = 900
SAID_CHARACTERS = 700

IDENTITY = ("user_id", "device_id", "agent_id")
LONGEST_IDENTITY = 256
"""The limit of `tools.answers.params`."""

MAIN_ARGUMENTS = (
    *("file_path", "path", "pattern", "raw_id", "title", "name", "entity_name", "researcher_name"),
    *("query", "topic", "url", "uri", "directory", "command"),
)
"""The target of a call is the first of these arguments that it gives."""

MOST_LOOKED_AT = 5_000
"""Maximum values of a result that are searched for ids."""

MOST_IDS = 100

_ID = re.compile(r"[0-9a-f]{32}")
_TEXTS = ("content", "text")
"""The keys under which results hold the text of a context, next to its id."""

_logger = logging.getLogger("toolcrib")


class Recording:
    """Records calls and messages; never fails, and delays a result by a second at most."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def keep(self, call: FinishedCall) -> None:
        """Records a call, unless its tool is a proxy."""
        if call.spec is not None and call.spec.is_proxy:
            return
        try:
            await self._written(_identity(call), _entry(call))
        except Exception:
            _logger.exception("A call of %r could not be recorded", call.name)

    async def hear(
        self,
        origin: Origin,
        action: str,
        said: str,
        *,
        is_recall: bool = False,
        context_ids: Sequence[str] = (),
    ) -> None:
        """Records a user's message, without anything that looks like a secret.

        The action names its channel, such as "prompt:recall". A recall only asks for stored
        content; `context_ids` are its results.
        """
        message = NewEntry(
            session_id=origin.session_id,
            client=origin.client,
            kind="message",
            time=time.time(),
            action=action,
            said=redacted_text(said, SAID_CHARACTERS),
            importance=MESSAGE,
            is_recall=is_recall,
            context_ids=tuple(context_ids),
        )
        await self._written(origin.identity, message)

    async def _written(self, identity: Identity, new: NewEntry) -> None:
        written = asyncio.wrap_future(self._recorder.submit(identity, new))
        with anyio.CancelScope(shield=True):
            await asyncio.wait([written], timeout=PATIENCE)  # does not cancel on timeout


def _identity(call: FinishedCall) -> Identity:
    """Returns whom a call concerned: the caller, or another identity it may act for."""
    own = call.call.context.identity
    taken = {} if call.spec is None else call.spec.input_schema.get("properties", {})
    named = {key: call.arguments.get(key) for key in IDENTITY if key in taken}
    for key, value in named.items():
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > LONGEST_IDENTITY:
            return own
        if key == "user_id" and not value:
            return own
    try:
        return call.call.context.about(**named)
    except PermissionDeniedError:
        return own


def _entry(call: FinishedCall) -> NewEntry:
    arguments, context = call.arguments, call.call.context
    names = () if call.spec is None else call.spec.secret_names
    entry = NewEntry(
        session_id=context.session_id,
        client=context.client,
        kind="call",
        time=call.call.began,
        action=clip(call.name if call.spec is None else call.spec.name, ACTION_CHARACTERS),
        target=_target(arguments),
        arguments=redacted(_beside_identity(arguments), ARGUMENT_CHARACTERS, names),
        outcome=call.remembered_outcome,
        said="" if call.result is None else redacted_text(call.result.text, SAID_CHARACTERS),
        milliseconds=round(call.seconds * 1000, 3),
        importance=_importance(call),
    )
    if call.spec is None:  # what it was meant to store may be stored by the next call
        return replace(entry, target="", arguments={})
    if call.spec.scope is not ToolScope.CONTEXT:
        return entry
    return _of_stored(entry, call, call.spec)


def _of_stored(entry: NewEntry, call: FinishedCall, spec: ToolSpec) -> NewEntry:
    """Builds the entry of a call on stored context, without anything that may be forgotten."""
    entry = replace(entry, said="")  # failures too quote arguments and similar names
    if spec.destructive and spec.effects == {Effect.WRITE}:
        return replace(entry, target="", arguments={})
    answer = call.result and call.result.structured
    if spec.read_only:
        told, read = _ids([answer, dict(call.arguments)])
        return replace(entry, is_recall=True, context_ids=told, read_ids=read)
    told, _ = _ids([answer])  # arguments such as metadata may contain any id
    if told:
        return replace(entry, context_ids=told)
    if spec.is_function:  # its target may be the text it was to store
        return replace(entry, arguments={}, target="")
    return replace(entry, arguments={}, target=_unlinked_target(entry, call.arguments))


def _unlinked_target(entry: NewEntry, arguments: Mapping[str, Any]) -> str:
    """Returns the target of a call that names nothing it stored, without the text to store."""
    match entry.outcome:
        case "ok":
            return entry.target  # the person or thing it belongs to
        case outcome if outcome in {CANCELLED, DeadlineError.error_type}:
            return ""  # it may be stored
        case _:
            return _target({"path": arguments.get("path")})


def _importance(call: FinishedCall) -> float:
    spec = call.spec
    if spec is None or spec.read_only or call.remembered_outcome != "ok":
        return READING
    return CHANGING + DESTRUCTIVE * spec.destructive


def _beside_identity(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key not in IDENTITY}


def _target(arguments: Mapping[str, Any]) -> str:
    given = (arguments.get(name) for name in MAIN_ARGUMENTS)
    found = next((value for value in given if isinstance(value, str) and value.strip()), "")
    return redacted_text(found, TARGET_CHARACTERS)


def _ids(roots: list[object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the ids of contexts in JSON values, and those next to a text."""
    told: dict[str, None] = {}
    read: dict[str, None] = {}
    for value in _values(roots):
        if isinstance(value, str) and _ID.fullmatch(value):
            told[value] = None
        elif isinstance(value, dict) and any(value.get(name) for name in _TEXTS):
            own = value.get("id")
            if isinstance(own, str) and _ID.fullmatch(own):
                read[own] = None
        if len(told) >= MOST_IDS:
            break
    return tuple(told), tuple(read)


def _values(roots: list[object]) -> Iterator[object]:
    waiting = deque(roots)
    for _ in range(MOST_LOOKED_AT):
        if not waiting:
            return
        value = waiting.popleft()
        yield value
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
