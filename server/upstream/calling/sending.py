"""Sending: one call of a tool as it goes to another server, in the era of the connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import Discriminator, Tag, TypeAdapter

from server.upstream.calling.questions import Questions
from server.upstream.calling.upstream_tasks import Ask, CreatedTask, Follower, is_task
from server.upstream.connections.connection import Connection
from tools.core.client import ProgressReporter

MOST_PAGES = 100
"""Of a list of tools that is asked for anew."""

Answer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[Answer | CreatedTask] = TypeAdapter(
    Annotated[
        Annotated[Answer, Tag("result")] | Annotated[CreatedTask, Tag("task")],
        Discriminator(lambda answer: "task" if is_task(answer) else "result"),
    ]
)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A call of a tool of another server.

    Attributes:
        name: What the server calls it.
        arguments: As the caller gave them.
        ask: Has the caller answer what a task asks.
        heard: Called each time that the server tells how far a task is.
        meta: What the caller told whoever works on it.
        report: Hears how far it is; None where nobody wants to.
        level: From which level on the caller wants to hear what is logged; None if it did not say.
    """

    name: str
    arguments: dict[str, Any]
    ask: Ask
    heard: Callable[[], None]
    meta: dict[str, Any] = field(default_factory=dict)
    report: ProgressReporter | None = None
    level: types.LoggingLevel | None = None

    async def send(
        self,
        connection: Connection,
        answers: types.InputResponses | None = None,
        state: str | None = None,
    ) -> Answer:
        """Makes the call once; one that becomes a task is followed until that has ended.

        The result is not held against the output schema of the tool: what the server answers is
        its client's to judge.

        Args:
            connection: To the server.
            answers: To what it asked when it was called before.
            state: What it handed over then.

        Raises:
            MCPError: The server's, or that the connection has ended.
            pydantic.ValidationError: If the answer is none.
        """
        await self._have_logged(connection)
        request = self._request(connection, answers, state)
        try:
            return await self._sent(connection.session, request)
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH or not connection.is_modern:
                raise
            # Its arguments travel in headers as well, by a schema that this connection has not
            # seen: it is asked for, and the call made once more (2026-07-28, Streamable HTTP).
            if not await self._is_listed(connection.session):
                raise
        return await self._sent(connection.session, request)

    async def _sent(self, session: ClientSession, request: types.CallToolRequest) -> Answer:
        told = None if self.report is None else _positional(self.report)
        answer = await session.send_request(request, _ANSWER, progress_callback=told)
        if not isinstance(answer, CreatedTask):
            return answer
        return await Follower(session, self.ask, self.report, self.heard).result(answer)

    def _request(
        self,
        connection: Connection,
        answers: types.InputResponses | None,
        state: str | None,
    ) -> types.CallToolRequest:
        meta = dict(self.meta)
        if connection.is_modern and self.level is not None:
            meta[types.LOG_LEVEL_META_KEY] = self.level
        params = types.CallToolRequestParams(
            name=self.name, arguments=self.arguments, input_responses=answers, request_state=state
        )
        if meta:
            params.meta = meta  # type: ignore[assignment]  # an open map
        return types.CallToolRequest(params=params)

    async def _have_logged(self, connection: Connection) -> None:
        """Tells a server of the older protocols what its client wants to hear."""
        questions = connection.callbacks
        if self.level is None or connection.is_modern or not isinstance(questions, Questions):
            return
        if questions.level == self.level or not connection.client.server_capabilities.logging:
            return
        questions.level = self.level
        params = types.SetLevelRequestParams(level=self.level)
        await connection.session.send_request(
            types.SetLevelRequest(params=params), types.EmptyResult
        )

    async def _is_listed(self, session: ClientSession) -> bool:
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            if any(each.name == self.name for each in page.tools):
                return True
            cursor = page.next_cursor
            if cursor is None:
                break
        return False


def _positional(report: ProgressReporter) -> ProgressFnT:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        await report(progress, total, message)

    return told
