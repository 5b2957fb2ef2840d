from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

import tools
from tools.core.context import RequestContext
from tools.core.discovery import discover
from tools.core.errors import ToolError
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.sandbox.web.search.search import SearchPace, make_search

pytestmark = pytest.mark.anyio

HIT = {"title": "<b>Kites</b>", "url": "https://kites.example/", "content": "Slow\u202e kites"}
QUICK = SearchPace(first_wait=0.0, seconds=0.5, engine_seconds=0.5)


class Instance:
    """A SearXNG on loopback."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.status = 200
        self.found = list(found)
        self.is_silent = False
        self.asked: list[dict[str, list[str]]] = []
        self.port = 0

    async def speak(self, stream: SocketStream) -> None:
        async with stream:
            head = await stream.receive()
            self.asked.append(parse_qs(urlsplit(head.split(b" ")[1].decode()).query))
            if self.is_silent:
                await stream.receive()
            body = json.dumps({"results": self.found}).encode()
            lines = [f"HTTP/1.1 {self.status} Said", f"Content-Length: {len(body)}", "", ""]
            await stream.send("\r\n".join(lines).encode() + body)


@asynccontextmanager
async def _listening(instance: Instance) -> AsyncIterator[Instance]:
    async def speak(stream: SocketStream) -> None:
        try:
            await instance.speak(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return

    (listener,) = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners
    async with listener, anyio.create_task_group() as group:
        instance.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # no Django
        group.start_soon(listener.serve, speak)
        yield instance
        group.cancel_scope.cancel()


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    async with _listening(Instance(HIT)) as instance:
        yield instance


def _spec() -> ToolSpec:
    registry = ToolRegistry()
    discover(registry, tools)
    return registry.find("web_search")


def _unused() -> Any:
    raise AssertionError


async def _call(instance: Instance, **arguments: Any) -> ToolResult:
    """What web_search answers, with the instance as its engine."""
    machine = Machine(
        processes=_unused,
        web=_unused,
        search=lambda: make_search(
            provider="searxng", url=f"http://127.0.0.1:{instance.port}", pace=QUICK
        ),
    )
    spec = _spec()
    async with machine.running():
        try:
            checked = spec.validate(arguments)
            return await spec.invoke(checked, RequestContext().granted(machine=machine))
        except ToolError as error:
            return ToolResult.failure(error)


async def test_web_search_answers_with_plain_results(instance: Instance) -> None:
    result = await _call(instance, query=" slow\n kites ")
    assert result.structured == {
        "query": "slow kites",
        "results": [
            {
                "title": "Kites",
                "snippet": "Slow kites",
                "url": "https://kites.example/",
                "source": "searxng",
            }
        ],
        "engine": "searxng",
    }
    assert result.text == "1. Kites\nhttps://kites.example/\nSlow kites"
    assert instance.asked[0]["q"] == ["slow kites"]


async def test_nothing_found_is_said_in_a_sentence(instance: Instance) -> None:
    instance.found = []
    result = await _call(instance, query="slow kites")
    assert not result.is_error
    assert result.structured["results"] == []
    assert "found nothing for 'slow kites'" in result.text


async def test_as_many_are_told_as_were_asked_for(instance: Instance) -> None:
    instance.found = [HIT | {"url": f"https://kites.example/{number}"} for number in range(30)]
    assert len((await _call(instance, query="kites")).structured["results"]) == 5
    assert len((await _call(instance, query="kites", max_results=20)).structured["results"]) == 20
    (first,) = (await _call(instance, query="kites", max_results=1)).structured["results"]
    assert first["url"].endswith("/0")


async def test_what_narrows_a_search_is_passed_on(instance: Instance) -> None:
    await _call(instance, query="kites", lang="de-at", timelimit="y", page=2)
    asked = instance.asked[0]
    assert (asked["language"], asked["time_range"], asked["pageno"]) == (["de-AT"], ["year"], ["2"])


@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, "rate_limited"), (403, "unavailable"), (500, "upstream_failed"), (200, "timeout")],
)
async def test_each_failure_has_a_type_and_says_what_to_do(
    instance: Instance, status: int, expected: str
) -> None:
    instance.status = status
    instance.is_silent = expected == "timeout"
    result = await _call(instance, query="kites")
    assert result.is_error
    assert result.structured["error_type"] == expected
    assert result.structured["next_actions"]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"query": ""}, {"query": " \n"}, {"query": "x" * 501}, {"max_results": 0}),
        *({"max_results": 21}, {"lang": "english"}, {"lang": "d"}, {"lang": "de-AUT"}),
        *({"timelimit": "h"}, {"timelimit": "day"}, {"page": 0}, {"page": 51}, {"engine": "x"}),
    ],
    ids=str,
)
async def test_what_cannot_be_searched_for_is_refused(
    instance: Instance, wrong: dict[str, Any]
) -> None:
    result = await _call(instance, **({"query": "kites"} | wrong))
    assert result.structured["error_type"] == "invalid_arguments"
    assert next(iter(wrong)) in result.text
    assert not instance.asked


def test_it_says_that_it_reaches_outside() -> None:
    spec = _spec()
    assert spec.scope is ToolScope.SYSTEM
    assert spec.effects == {Effect.READ, Effect.EXTERNAL}
    assert spec.open_world
    assert "leaves this machine" in spec.description
