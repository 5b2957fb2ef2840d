import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.transport.middleware import Drain

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
PART: Message = {"type": "http.response.body", "body": b"part", "more_body": True}
END: Message = {"type": "http.response.body", "body": b"end"}


def answering(*messages: Message, endless: bool = False) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if endless:
            await anyio.sleep_forever()

    return app


async def sent_by(drain: Drain, *, end: bool = False) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise NotImplementedError

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, {"type": "http"}, receive, send)
            await anyio.wait_all_tasks_blocked()
            if end:
                drain.end_all()
    return sent


async def test_a_whole_response_passes_unchanged() -> None:
    assert await sent_by(Drain(answering(START, PART, END))) == [START, PART, END]


@pytest.mark.parametrize("begun", [(START,), (START, PART)])
async def test_a_response_that_is_cut_short_is_completed(begun: tuple[Message, ...]) -> None:
    sent = await sent_by(Drain(answering(*begun, endless=True)), end=True)
    assert sent == [*begun, {"type": "http.response.body"}]


async def test_a_request_without_a_response_yet_is_answered_503() -> None:
    start, body = await sent_by(Drain(answering(endless=True)), end=True)
    assert start["status"] == 503
    assert body == {"type": "http.response.body"}


async def test_a_request_that_has_ended_is_not_touched() -> None:
    drain = Drain(answering(START, END))
    await sent_by(drain)
    assert await sent_by(drain, end=True) == [START, END]
