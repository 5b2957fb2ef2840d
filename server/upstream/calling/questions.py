"""Converts a server's questions to the form for its client, named and safe to display."""

from __future__ import annotations

import re

import mcp_types as types

from server.mcp.visible import visible, visible_form, visible_lines

_WEB = re.compile(r"https?://[!-~]+", re.IGNORECASE)
"""Addresses of visible characters only: RFC 3986 allows no others."""


class UnshowableError(ValueError):
    """A question that must not be shown to a user."""


def present(server: str, request: types.InputRequest) -> types.InputRequest:
    """Converts another server's question to the form for its client.

    Raises an UnshowableError if it sends the user to an invalid web address.
    """
    match request:
        case types.ElicitRequest(params=types.ElicitRequestURLParams() as params):
            return types.ElicitRequest(params=present_page(server, params))
        case types.ElicitRequest(params=types.ElicitRequestFormParams() as params):
            form = types.ElicitRequestFormParams(
                message=_message_text(server, params.message),
                requested_schema=visible_form(params.requested_schema),
            )
            return types.ElicitRequest(params=form)
        case types.CreateMessageRequest(params=params):
            return types.CreateMessageRequest(params=_sampling(server, params))
        case _:
            return types.ListRootsRequest()


def completed_id(server: str, elicitation_id: str) -> str:
    """Returns the question's id for the client, unique across servers."""
    return f"{server}:{elicitation_id}"


def present_page(server: str, params: types.ElicitRequestURLParams) -> types.ElicitRequestURLParams:
    """Converts a web page that another server sends the user to, to the form for its client."""
    if not _WEB.fullmatch(params.url):
        raise UnshowableError(f"{visible(params.url[:200])} is not the address of a web page.")
    return types.ElicitRequestURLParams(
        message=_message_text(server, params.message),
        url=params.url,
        elicitation_id=completed_id(server, params.elicitation_id or ""),
    )


def _message_text(server: str, message: str) -> str:
    return f"The server {server!r} asks: {visible_lines(message)}"


def _sampling(
    server: str, params: types.CreateMessageRequestParams
) -> types.CreateMessageRequestParams:
    """Converts a sampling request; the user may see it first.

    The requested context would include that of all servers behind this one, so none is included.
    """
    who = f"The MCP server {server!r} asks this, through Toolcrib."
    system = f"{who}\n\n{visible_lines(params.system_prompt)}" if params.system_prompt else who
    return params.model_copy(
        update={
            "system_prompt": system,
            "messages": [_message(each) for each in params.messages],
            "include_context": "none",
            "meta": None,
        }
    )


def _message(message: types.SamplingMessage) -> types.SamplingMessage:
    shown = [
        each.model_copy(update={"text": visible_lines(each.text)})
        if isinstance(each, types.TextContent)
        else each
        for each in message.content_as_list
    ]
    content = shown if isinstance(message.content, list) else shown[0]
    return message.model_copy(update={"content": content})
