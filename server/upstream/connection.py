"""Connections: one session with another server, alive in a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp import Client
from mcp.client.session import (
    ElicitationFnT,
    IncomingMessage,
    ListRootsFnT,
    LoggingFnT,
    SamplingFnT,
)
from mcp.client.session import MessageHandlerFnT as MessageHandler
from mcp.client.stdio import StdioServerParameters

from server.gateway_settings import ServerSettings

__all__ = ["Callbacks", "Connection", "Listener"]

Listener = Callable[[types.ServerNotification | None], None]
"""Is told a notification; None once the connection has closed."""


class Callbacks:
    """What a connection does with what its server asks and tells.

    Attributes:
        elicitation: Answers questions to a person.
        sampling: Answers questions to a model.
        roots: Answers which directories the client works in.
        logging: Takes log messages.
        message: Takes every notification.
    """

    elicitation: ElicitationFnT | None = None
    sampling: SamplingFnT | None = None
    roots: ListRootsFnT | None = None
    logging: LoggingFnT | None = None
    message: MessageHandler | None = None


class Connection:
    """One session with another server.

    Args:
        settings: How it is reached.
        callbacks: What is done with what it asks and tells.

    Attributes:
        listeners: Who is told each notification.
        closed: Set once the session has ended.
    """

    def __init__(self, settings: ServerSettings, callbacks: Callbacks) -> None:
        self._settings = settings
        self._callbacks = callbacks
        self._client: Client | None = None
        self._scope = anyio.CancelScope()
        self.listeners: set[Listener] = set()
        self.closed = anyio.Event()

    @property
    def client(self) -> Client:
        """The open session."""
        if self._client is None:
            raise RuntimeError("A connection is used between open and close.")
        return self._client

    async def open(self, group: TaskGroup) -> None:
        """Connects; the session then lives in a task of the group until it is closed.

        Raises:
            Exception: Whatever keeps it from being connected.
        """
        with anyio.fail_after(self._settings.start_timeout):
            await group.start(self._live)

    def close(self) -> None:
        """Ends the session; `closed` is set once it has ended."""
        self._scope.cancel()

    async def _live(self, *, task_status: TaskStatus[None]) -> None:
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    self._client = await stack.enter_async_context(self._make_client())
                    task_status.started()
                    await anyio.sleep_forever()
        finally:
            self.closed.set()
            self._tell(None)

    async def _hear(self, message: IncomingMessage) -> None:
        if not isinstance(message, Exception):
            self._tell(message)
        if self._callbacks.message is not None:
            await self._callbacks.message(message)

    def _tell(self, notification: types.ServerNotification | None) -> None:
        for listener in tuple(self.listeners):
            listener(notification)

    def _make_client(self) -> Client:
        asked = self._callbacks
        return Client(
            _address(self._settings),
            elicitation_callback=asked.elicitation,
            sampling_callback=asked.sampling,
            list_roots_callback=asked.roots,
            logging_callback=asked.logging,
            message_handler=self._hear,
        )


def _address(settings: ServerSettings) -> Any:  # noqa: ANN401  # whatever Client takes
    if settings.url:
        return settings.url
    return StdioServerParameters(
        command=settings.command,
        args=list(settings.args),
        env=_plain(settings.env),
        cwd=settings.cwd,
    )


def _plain(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in values.items()}
