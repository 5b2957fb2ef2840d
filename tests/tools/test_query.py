from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_question_is_answered_by_meaning_with_the_scores(
    open_crib: Opener, mode: str
) -> None:
    async with open_crib(mode) as crib:
        await crib.call("add_document", text="Lever the tube out and patch it.", title="Tyres")
        await crib.call("add_document", text="The judge adjourned the hearing.", title="Court")
        await crib.embed()
        answer = await crib.call("query", query="How do I repair a flat wheel?")
        assert (answer["mode"], answer["scope"]) == ("hybrid", "knowledge")
        hit = answer["hits"][0]
        assert hit["title"] == "Tyres"
        assert hit["dense"] > 0.2
        assert 0 <= hit["score"] <= 1
        text = await crib.text("query", query="patch the tube")
        assert "[1] Tyres (text: Tyres)" in text
        assert "matched: patch, tube" in text


async def test_a_question_about_nothing_stored_says_so(open_crib: Opener) -> None:
    async with open_crib() as crib:
        assert "Nothing stored is close enough." in await crib.text("query", query="heron")
        await crib.call("add_document", text="The judge adjourned the hearing.", title="Court")
        await crib.embed()
        answer = await crib.call("query", query="best pizza in Naples")
        assert answer["hits"] == []


async def test_the_answer_says_where_it_was_looked_for(open_crib: Opener) -> None:
    async with open_crib() as crib:
        for scope, looked in (("auto", "knowledge"), ("knowledge", "knowledge"), ("all", "all")):
            assert (await crib.call("query", query="heron", scope=scope))["scope"] == looked


async def test_top_k_limits_the_answer(open_crib: Opener) -> None:
    async with open_crib() as crib:
        for number in range(7):
            await crib.call("add_document", text=f"Heron number {number}", title=f"t{number}")
        assert len((await crib.call("query", query="heron"))["hits"]) == 5
        assert len((await crib.call("query", query="heron", top_k=7))["hits"]) == 7


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "query"),
    ({"query": ""}, "query"),
    ({"query": " \n"}, "asks nothing"),
    ({"query": "x" * 10_001}, "10000"),
    ({"query": "x", "top_k": 0}, "top_k"),
    ({"query": "x", "top_k": 101}, "top_k"),
    ({"query": "x", "scope": "memory"}, "scope"),
    ({"query": "x", "topk": 3}, "did you mean `top_k`"),
]


async def test_a_wrong_question_is_told_what_is_wrong(open_crib: Opener) -> None:
    async with open_crib() as crib:
        for arguments, said in WRONG:
            kind, text = await crib.failure("query", **arguments)
            assert kind == "invalid_arguments"
            assert said in text


async def test_an_answer_never_crosses_users(open_crib: Opener) -> None:
    async with open_crib(identity__user_id="ann") as crib:
        await crib.call("add_document", text="The heron of Bob", title="t", user_id="bob")
        assert (await crib.call("query", query="heron of Bob"))["hits"] == []
        assert (await crib.call("query", query="heron of Bob"))["coverage"]["total"] == 0
        found = await crib.call("query", query="heron", user_id="bob")
        assert [hit["content"] for hit in found["hits"]] == ["The heron of Bob"]
