"""What another server asks, as it is shown: it says who asks, and nothing in it hides.

Another server is not trusted: what it asks must not pass for a question of Toolcrib or of a third
server, and a person is to see all of it.
"""

from __future__ import annotations

import re

import mcp_types as types

from server.mcp.visible import visible, visible_form, visible_lines

_WEB = re.compile(r"https?://[!-~]+", re.IGNORECASE)
"""Addresses whose every character can be seen: RFC 3986 has no others."""


class UnshowableError(ValueError):
    """A question that no person is to be shown."""


def presented(server: str, request: types.InputRequest) -> types.InputRequest:
    """A question of another server as its client may show it.

    Args:
        server: Name of the server in the settings.
        request: What it asks.

    Raises:
        UnshowableError: If it sends the person to what is no web address.
    """
    match request:
        case types.ElicitRequest(params=types.ElicitRequestURLParams() as params):
            return types.ElicitRequest(params=presented_page(server, params))
        case types.ElicitRequest(params=types.ElicitRequestFormParams() as params):
            return types.ElicitRequest(params=_form(server, params))
        case types.CreateMessageRequest(params=params):
            return types.CreateMessageRequest(params=_sampling(server, params))
        case _:
            return types.ListRootsRequest()


def completed_id(server: str, elicitation_id: str) -> str:
    """The id of a question as the client knows it: two servers may use the same."""
    return f"{server}:{elicitation_id}"


def presented_page(
    server: str, params: types.ElicitRequestURLParams
) -> types.ElicitRequestURLParams:
    """A web page that another server sends a person to, as its client may show it.

    Args:
        server: Name of the server in the settings.
        params: Where it sends the person, and why.

    Raises:
        UnshowableError: If that is no web address.
    """
    if not _WEB.fullmatch(params.url):
        raise UnshowableError(f"{visible(params.url[:200])} is not the address of a web page.")
    return types.ElicitRequestURLParams(
        message=_asked(server, params.message),
        url=params.url,
        elicitation_id=completed_id(server, params.elicitation_id or ""),
    )


def _form(server: str, params: types.ElicitRequestFormParams) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(
        message=_asked(server, params.message),
        requested_schema=visible_form(params.requested_schema),
    )


def _asked(server: str, message: str) -> str:
    return f"The server {server!r} asks: {visible_lines(message)}"


def _sampling(
    server: str, params: types.CreateMessageRequestParams
) -> types.CreateMessageRequestParams:
    """What a model is asked; a person may be shown it first.

    The context that the server may ask to be included would be that of every server behind this
    one: it gets none.
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
    blocks = message.content if isinstance(message.content, list) else [message.content]
    shown = [
        each.model_copy(update={"text": visible_lines(each.text)})
        if isinstance(each, types.TextContent)
        else each
        for each in blocks
    ]
    return message.model_copy(
        update={"content": shown if isinstance(message.content, list) else shown[0]}
    )
