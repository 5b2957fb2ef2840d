"""A server over HTTP with faults: frail_http_upstream.py PORT KIND [FAULT]; port 0 takes any.

KIND is "modern", "legacy" (Streamable HTTP) or "sse". It prints the port once it listens. The
faults: "token" wants the bearer token `right`, "forgets" forgets its sessions after each call,
"packed" compresses its answers, "huge" answers calls with more than anybody takes.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PORT, KIND, FAULT = int(sys.argv[1]), sys.argv[2], (*sys.argv[3:], "")[0]
OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)

toy = MCPServer("frail")


@toy.tool()
def echo(text: str) -> str:
    return text


@toy.tool()
def headed(text: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Text"})]) -> str:
    return text


class Faulty:
    """An application with a fault in front of it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.forgotten: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if FAULT == "token" and headers.get(b"authorization") != b"Bearer right":
            await answer(send, 401, b"Who are you?")
            return
        if KIND == "legacy" and scope["path"] == "/mcp" and scope["method"] == "POST":
            body, receive = await read(receive)
            if body.get("method") == "server/discover":
                await answer(send, 400, b"no session")
                return
            session = headers.get(b"mcp-session-id", b"")
            if body.get("method") == "tools/call":
                if FAULT == "forgets" and session in self.forgotten:
                    await answer(send, 404, b"no such session")
                    return
                self.forgotten.add(session)
                if FAULT in {"huge", "packed"}:
                    await refuse(send, body)
                    return
        await self.app(scope, receive, send)


async def refuse(send: Send, body: dict[str, Any]) -> None:
    text = "x" * (40 << 20 if FAULT == "huge" else 10)
    content = [{"type": "text", "text": text}]
    said = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"content": content}}).encode()
    if FAULT == "packed":
        await answer(send, 200, gzip.compress(said), (b"content-encoding", b"gzip"))
    else:
        await answer(send, 200, said)


async def answer(send: Send, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read(receive: Receive) -> tuple[dict[str, Any], Receive]:
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    whole: list[Message] = [{"type": "http.request", "body": b"".join(pieces)}]

    async def again() -> Message:
        return whole.pop() if whole else await receive()

    return json.loads(b"".join(pieces)), again


def main() -> None:
    make = toy.sse_app if KIND == "sse" else toy.streamable_http_app
    app = Faulty(make(transport_security=OPEN))
    listener = socket.create_server(("127.0.0.1", PORT))
    print(listener.getsockname()[1], flush=True)  # noqa: T201  # for whoever started it
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=0, lifespan="on")
    )
    server.run(sockets=[listener])


main()
