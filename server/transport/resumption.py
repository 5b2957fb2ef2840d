"""Resumption: a client that lost a stream of Streamable HTTP gets what it missed (2025-11-25).

Each stream begins with an event without data, whose id a client can name before anything came, and
which says when to come back.
"""

from __future__ import annotations

from collections import deque
from itertools import count, dropwhile

import mcp_types as types
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

RETRY_MS = 1_000
"""After which a client that lost its stream comes back."""

MOST = 100
"""Messages of one session that are kept."""


class RecentEvents(EventStore):
    """The last messages of one session."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._events: deque[tuple[str, str, types.JSONRPCMessage | None]] = deque(maxlen=MOST)

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        """Keeps a message, or the event without one that begins a stream; returns its id."""
        event_id = str(next(self._numbers))
        self._events.append((event_id, stream_id, message))
        return event_id

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Sends what a stream had after an event.

        Returns:
            The stream, if more is to come; None if it has ended, or the event is not kept.
        """
        events = dropwhile(lambda each: each[0] != last_event_id, tuple(self._events))
        _, stream, last = next(events, ("", None, None))
        for event_id, stream_id, message in events:
            if stream_id == stream and message is not None:
                last = message
                await send_callback(EventMessage(message, event_id))
        return None if isinstance(last, types.JSONRPCResponse | types.JSONRPCError) else stream


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with events of its own.

    The SDK has one store for all of them, in which streams are named by the ids of requests alone:
    a client would be sent what another one missed.
    """

    @property
    def event_store(self) -> EventStore:
        """A new store: it is asked for once a session."""
        return RecentEvents()

    @event_store.setter
    def event_store(self, _given: EventStore | None) -> None:
        """Takes none: there is not one for all."""
