"""A model on loopback that follows a script, and keeps what it was shown."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.clients.wires import WIRES, Call, Conversation, Wire

Script = Sequence[str | Call]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the model."""

    body: dict[str, Any]
    shown: Conversation


class ScriptedModel(ThreadingHTTPServer):
    """Answers with the steps of a script: the first, and after each tool's result the next.

    Requests without tools, for a title of the session and the like, are no part of the script.
    """

    daemon_threads = True

    def __init__(self, script: Script, names: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.names = names  # of our tools at the client, with `{}` for ours
        self.requests: list[Request] = []
        self.refused: list[str] = []  # hosts and paths that the client asked for as well

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def asked(self) -> list[Conversation]:
        """What the model was shown in each request with tools."""
        return [each.shown for each in self.requests if each.shown.tools]

    def next_step(self, shown: Conversation) -> tuple[str | Call, str]:
        """Returns the step of the script that follows a conversation, and the tool's name."""
        step = self.script[min(len(shown.results), len(self.script) - 1)]
        if not shown.tools:
            return "A title", ""
        if isinstance(step, str):
            return step, ""
        name = self.names.format(step.tool)
        is_own = name not in shown.tools and step.tool in shown.tools  # the client's own tool
        return step, step.tool if is_own else name


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_POST(self) -> None:
        given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, _query = self.path.partition("?")
        wire = next((each for each in WIRES if path.endswith(each.endings)), None)
        if wire is None:
            self._refuse()
            return
        body = json.loads(given)
        shown = wire.read(body)
        self.server.requests.append(Request(body, shown))
        step, name = self.server.next_step(shown)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            self._stream(wire, step, name)
        else:
            self._answer(200, json.dumps(wire.whole(str(step))).encode())

    def do_GET(self) -> None:
        self._refuse()

    def do_CONNECT(self) -> None:
        """Refuses to be a proxy: no client reaches a network from here."""
        self._refuse()

    def _refuse(self) -> None:
        self.server.refused.append(f"{self.command} {self.path}")
        self._answer(404, b'{"error": {"type": "not_found_error", "message": "not here"}}')

    def _stream(self, wire: Wire, step: str | Call, name: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for kind, event in wire.events(step, name, len(self.server.requests)):
            head = f"event: {kind}\n" if kind else ""
            typed = {"type": kind, **event} if kind else event
            self.wfile.write(f"{head}data: {json.dumps(typed)}\n\n".encode())
        if wire.endings == ("/chat/completions",):
            self.wfile.write(b"data: [DONE]\n\n")

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_given: object) -> None:
        """Prints nothing."""


@contextmanager
def scripted_model(script: Script, names: str) -> Iterator[ScriptedModel]:
    with ScriptedModel(script, names) as model:
        Thread(target=model.serve_forever, daemon=True).start()
        try:
            yield model
        finally:
            model.shutdown()
