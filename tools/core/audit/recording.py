"""Recording: what each call leaves in the memory of whom it was about.

How much an entry matters, 0 to 10: a call that only reads 2, any other 4, one that may remove or
overwrite 1 more, a message 5; each earlier success with the same target in the session raises it by
1, up to 3 (see `storage.memory.entries`). A failure matters as little as a call that only reads.

What is forgotten is told on by no entry. So calls that work on stored context (scope context) are
recorded without their answers, those that store something with their arguments only where the
answer names the contexts that they are then linked to, and those that delete without any.
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
from tools.core.audit.redact import clipped, redacted, redacted_text
from tools.core.calling.call import CANCELLED, FinishedCall
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, PermissionDeniedError
from tools.core.spec import Effect, ToolScope, ToolSpec

PATIENCE = 1.0
"""Seconds that an answer waits for its entry at most; it is written after that all the same."""

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
"""As `tools.answers.params` has it."""

MAIN_ARGUMENTS = (
    *("file_path", "path", "pattern", "raw_id", "title", "name", "entity_name", "researcher_name"),
    *("query", "topic", "url", "uri", "directory", "command"),
)
"""What a call is about: the first of these that it gives."""

MOST_LOOKED_AT = 5_000
"""Values of a result that are searched for ids."""

MOST_IDS = 100

_ID = re.compile(r"[0-9a-f]{32}")
_TEXTS = ("content", "text")
"""Where results have the text of a context, beside its id."""

_logger = logging.getLogger("toolcrib")


class Recording:
    """Has calls and messages recorded; never fails, and holds up an answer for a second at most.

    Args:
        recorder: Writes the entries.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def keep(self, call: FinishedCall) -> None:
        """Records a call, unless its tool only passes calls on."""
        if call.spec is not None and call.spec.passes_on:
            return
        try:
            await self._written(_identity(call), _entry(call))
        except Exception:
            _logger.exception("A call of %r could not be recorded", call.name)

    async def hear(
        self,
        context: RequestContext,
        action: str,
        said: str,
        *,
        is_recall: bool = False,
        context_ids: Sequence[str] = (),
    ) -> None:
        """Records what a person said, without what looks like a secret.

        The action is what it was said through, such as "prompt:recall"; a recall only asks for what
        is stored, and the context ids are what it was answered with.
        """
        message = NewEntry(
            session_id=context.session_id,
            client=context.client,
            kind="message",
            time=time.time(),
            action=action,
            said=redacted_text(said, SAID_CHARACTERS),
            importance=MESSAGE,
            is_recall=is_recall,
            context_ids=tuple(context_ids),
        )
        await self._written(context.identity, message)

    async def _written(self, identity: Identity, new: NewEntry) -> None:
        written = asyncio.wrap_future(self._recorder.submit(identity, new))
        with anyio.CancelScope(shield=True):
            await asyncio.wait([written], timeout=PATIENCE)  # it cancels nothing


def _identity(call: FinishedCall) -> Identity:
    """Whom a call was about: the caller, unless it named somebody else and may do so."""
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
        action=clipped(call.name if call.spec is None else call.spec.name, ACTION_CHARACTERS),
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
    """The entry of a call that works on stored context: what cannot be untold is left out."""
    entry = replace(entry, said="")  # a failure too quotes what it was given, and names like it
    if spec.destructive and spec.effects == {Effect.WRITE}:
        return replace(entry, target="", arguments={})
    answer = call.result and call.result.structured
    if spec.read_only:
        told, read = _ids([answer, dict(call.arguments)])
        return replace(entry, is_recall=True, context_ids=told, read_ids=read)
    told, _ = _ids([answer])  # what it was given may name anything, as metadata does
    if told:
        return replace(entry, context_ids=told)
    if spec.is_function:  # what it is about may be what it was to store
        return replace(entry, arguments={}, target="")
    return replace(entry, arguments={}, target=_unlinked_target(entry, call.arguments))


def _unlinked_target(entry: NewEntry, arguments: Mapping[str, Any]) -> str:
    """What a call that names nothing it stored was about, without words that it was to store."""
    match entry.outcome:
        case "ok":
            return entry.target  # a person or a thing, which it goes with
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
    """The ids of contexts in some JSON, and those that stand beside a text."""
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
    """Every value in some JSON, the outer ones first, up to a number."""
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
