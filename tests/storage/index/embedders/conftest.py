"""A loopback endpoint that speaks OpenAI's embeddings API over real HTTP."""

import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

DRIP_SECONDS = 0.05


class OpenAIServer(ThreadingHTTPServer):
    """The endpoint: what it was asked and when, and what it is to answer next.

    Attributes:
        asked: The bodies of the requests, with their paths and headers.
        backwards: Whether it lists the embeddings in the opposite order of their texts.
        dripping: Whether it sends its answers byte by byte.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.asked: list[dict[str, Any]] = []
        self.backwards = False
        self.replies: list[tuple[int, dict[str, str], bytes]] = []
        self.dripping = False
        self.closing = threading.Event()

    def reply(self, status: int, body: object = b"", **headers: str) -> None:
        """Has it answer one request like this, instead of with embeddings."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies.append((status, named, content))

    @staticmethod
    def vector_of(text: str, dimensions: int = 8) -> list[float]:
        """Its vector of a text, of no unit length."""
        return [byte - 100.5 for byte in sha256(text.encode()).digest()[:dimensions]]

    def embeddings(self, asked: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        size = asked.get("dimensions", 8)
        data = [
            {"object": "embedding", "index": at, "embedding": self.vector_of(text, size)}
            for at, text in enumerate(asked["input"])
        ]
        if self.backwards:
            data.reverse()
        return 200, {}, json.dumps({"object": "list", "data": data}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: OpenAIServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, "headers": dict(self.headers), **body})
        replies = self.server.replies
        status, headers, content = replies.pop(0) if replies else self.server.embeddings(body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.dripping:
            self._drip(content)
        else:
            self.wfile.write(content)

    def _drip(self, content: bytes) -> None:
        for byte in content:
            if self.server.closing.wait(DRIP_SECONDS):
                self.close_connection = True
                return
            self.wfile.write(bytes([byte]))

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the client has gone
            self.close_connection = True

    def log_message(self, *given: Any) -> None:
        """Says nothing."""


@pytest.fixture
def endpoint() -> Iterator[OpenAIServer]:
    """An OpenAI-compatible server of embeddings on loopback."""
    with OpenAIServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()
