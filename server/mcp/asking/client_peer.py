"""The client of a running function, for forms, roots and logs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from server.mcp.asking.channels import ANSWER_SECONDS
from server.mcp.asking.function_run import FunctionRun
from server.mcp.forwarding import MOST_AT_ONCE, wants_log
from server.mcp.sessions import can_ask
from server.mcp.visible import visible, visible_form, visible_lines
from server.mcp.wire import utf8_json
from tools.core.asking.peer import Capability, Filled, Form, LogLevel, Peer, Root
from tools.core.errors import UnavailableError
from tools.core.invisible import encodable

TITLES_SINCE = "2025-11-25"
"""The protocol that introduced titles for a form's choices (SEP-1330)."""

_NAME = re.compile("[a-z_][a-z0-9_]{0,63}")


class ClientPeer(Peer):
    """The client of a function."""

    def __init__(self, run: FunctionRun) -> None:
        self._run = run
        self._telling = 0

    async def fill(self, tool: str, form: Form) -> Filled:
        """Shows a form to the client's user and returns the result."""
        client = visible(self._run.client) or "this client"
        if not self._run.offers_forms:
            error = UnavailableError(
                f"{tool} wanted to ask the user something, but {client} cannot show a form"
                " (it offers no elicitation).",
                next_actions=[f"Call {tool} from a client that shows forms."],
            )
            raise self.without("elicitation", error)
        ctx = self._run.ctx
        knows_titles = ctx is None or ctx.protocol_version >= TITLES_SINCE
        question = _question(tool, form.message, form.schema if knows_titles else _older(form))
        answer = await self._answer(question, form.name if _NAME.fullmatch(form.name) else "")
        if isinstance(answer, types.ElicitResult):
            return Filled(answer.action, answer.content or {})
        said = answer.message if isinstance(answer, types.ErrorData) else "no answer to a form"
        raise UnavailableError(f"{client} did not show the form of {tool}: {visible(said)}")

    async def roots(self, tool: str) -> list[Root]:
        """Returns the client's working directories."""
        request = types.ListRootsRequest()
        if can_ask(self._run.capabilities, request):
            answer = await self._answer(request, "")
            if isinstance(answer, types.ListRootsResult):
                return [Root(str(each.uri), each.name or "") for each in answer.roots]
        return await super().roots(tool)

    def without(self, capability: Capability, error: UnavailableError) -> UnavailableError:
        """Records that a tool failed for lack of a client capability; returns the error."""
        self._run.note_missing(capability, error.message)
        return error

    async def _answer(
        self, question: types.InputRequest, name: str
    ) -> types.InputResponse | types.ErrorData:
        key = name or secrets.token_hex(16)
        return (await self._run.ask({key: question}, seconds=ANSWER_SECONDS))[key]

    async def log(self, tool: str, level: LogLevel, text: str) -> None:
        """Logs a message, and sends it to the client if the level is high enough."""
        await super().log(tool, level, text)
        ctx = self._run.ctx
        floor = None if self._run.is_modern else self._run.level
        if ctx is None or self._telling >= MOST_AT_ONCE or not wants_log(ctx, level, floor):
            return
        params = types.LoggingMessageNotificationParams(
            level=level, logger=tool, data=encodable(text)
        )
        self._telling += 1
        try:
            await ctx.session.send_notification(
                types.LoggingMessageNotification(params=params), ctx.request_id
            )
        finally:
            self._telling -= 1

    async def changed(self, uri: str) -> None:
        """Notifies subscribers that a resource changed."""
        await self._run.changed(uri)


def _question(tool: str, message: str, schema: Mapping[str, Any]) -> types.ElicitRequest:
    """Builds a form that names the tool, with invisible characters marked."""
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=encodable(f"{tool!r} asks: {visible_lines(message)}"),
            requested_schema=utf8_json(visible_form(schema)),
        )
    )


def _older(form: Form) -> dict[str, Any]:
    """Converts a form's choices to the format for clients before SEP-1330."""
    fields = form.schema["properties"]
    return {
        **form.schema,
        "properties": {name: _with_enum_names(each) for name, each in fields.items()},
    }


def _with_enum_names(field: Mapping[str, Any]) -> Mapping[str, Any]:
    if "oneOf" not in field:
        return field
    rest = {key: value for key, value in field.items() if key != "oneOf"}
    choices = field["oneOf"]
    return {
        **rest,
        "enum": [each["const"] for each in choices],
        "enumNames": [each["title"] for each in choices],
    }
