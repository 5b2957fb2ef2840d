import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from server.chat import ChatSampler
from tools.core.client import NoReply, Prompt, Refusal, Reply

KEY = "sk-secret-hunter2"
PROMPT = Prompt("Be short.", "The notes.", 100)

Answer = tuple[int, bytes]


def completion(**message: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant"} | message}]}).encode()


class Api:
    """A chat API on loopback that gives its answers one after the other, the last for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                api.asked.append((self.path, dict(self.headers), body))
                status, answer = api.answers.pop(0) if len(api.answers) > 1 else api.answers[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Api]]:
    with ExitStack() as stack:

        def start(*answers: Answer) -> Api:
            api = Api(*answers)
            stack.callback(api.stop)
            return api

        yield start


async def test_a_model_behind_an_endpoint_answers(serve: Callable[..., Api]) -> None:
    api = serve((200, completion(content="In short.")))
    sampler = ChatSampler(api.url + "/", "tiny", api_key=KEY)
    assert await sampler.ask([PROMPT, PROMPT], state="") == [Reply("In short.", "tiny")] * 2
    path, headers, body = api.asked[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == "tiny"
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("system", "Be short."),
        ("user", "The notes."),
    ]


async def test_an_endpoint_that_is_busy_is_asked_again(serve: Callable[..., Api]) -> None:
    api = serve((503, b"busy"), (200, completion(content="Later.")))
    assert await ChatSampler(api.url, "tiny").ask([PROMPT], state="") == [Reply("Later.", "tiny")]
    assert len(api.asked) == 2
    assert "Authorization" not in api.asked[0][1]


@pytest.mark.parametrize(
    "answer",
    [
        (401, KEY.encode()),
        (400, b"no such model"),
        (302, b""),
        (200, b""),
        (200, b"<html>"),
        (200, KEY.encode()),
        (200, b"[" * 100_000),
        (200, b"[]"),
        (200, b'{"choices": []}'),
        (200, b'{"choices": [{"message": "hello"}]}'),
        (200, completion()),
        (200, completion(content=None)),
        (200, completion(content=[{"type": "text", "text": "x"}])),
        (200, completion(content=" \n")),
    ],
)
async def test_what_is_no_answer_counts_as_none(
    serve: Callable[..., Api], caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    caplog.set_level(logging.DEBUG)
    api = serve(answer)
    (reply,) = await ChatSampler(api.url, "tiny", api_key=KEY).ask([PROMPT], state="")
    assert isinstance(reply, NoReply)
    assert KEY not in caplog.text + reply.problem


@pytest.mark.parametrize(
    "body",
    [
        completion(content="I cannot.", refusal="I cannot."),
        b'{"choices":[{"message":{"content":"x"},"finish_reason":"content_filter"}]}',
    ],
)
async def test_a_model_that_refuses_is_told_apart(serve: Callable[..., Api], body: bytes) -> None:
    api = serve((200, body))
    answered = await ChatSampler(api.url, "tiny").ask([PROMPT], state="")
    assert answered == [Refusal("the model tiny")]


async def test_an_endpoint_that_is_not_there_counts_as_none(serve: Callable[..., Api]) -> None:
    api = serve((200, b""))
    api.stop()
    (reply,) = await ChatSampler(api.url, "tiny", timeout=0.2).ask([PROMPT], state="")
    assert isinstance(reply, NoReply)
