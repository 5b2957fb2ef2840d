from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Any]]
SETS = json.loads(Path(__file__).with_name("sets").joinpath("intents.json").read_text("utf-8"))
INTENTS = [
    pytest.param(intent, right, id=intent)
    for parts in SETS.values()
    for intent, right in parts["seen"][:8]
]


def _names(found: dict[str, Any]) -> list[str]:
    return [each["name"] for each in found["operators"]]


@pytest.mark.parametrize(("intent", "right"), INTENTS)
async def test_an_intent_finds_its_operators(crib: Any, intent: str, right: list[str]) -> None:
    found = await crib.call("retrieve_operators", intent=intent, top_k=5)

    assert set(_names(found)) & set(right)
    scores = [each["score"] for each in found["operators"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


async def test_duplicate_documents_find_the_deduplicators_of_documents_first(crib: Any) -> None:
    for intent in ("remove duplicate documents", "去除重复文档"):
        found = await crib.call("retrieve_operators", intent=intent, top_k=3)

        assert all("document" in name and "deduplicator" in name for name in _names(found)), found


async def test_what_no_operator_has_a_word_of_finds_nothing_and_says_who_looked(
    crib: Any,
) -> None:
    found = await crib.call("retrieve_operators", intent="qqxyz")

    assert found["operators"] == []
    assert [each["searcher"] for each in found["trace"]] == ["bm25", "regex"]


async def test_meaning_finds_what_words_rank_too_low(crib: Any) -> None:
    intent = "turn a few example question-answer pairs into many more"
    by_words = await crib.call("retrieve_operators", intent=intent, mode="bm25", top_k=5)
    by_both = await crib.call("retrieve_operators", intent=intent, top_k=5)

    assert "generate_qa_from_examples_mapper" not in _names(by_words)
    assert "generate_qa_from_examples_mapper" in _names(by_both)
    assert by_both["trace"][0]["searcher"] == "hybrid"
    for each in by_both["operators"]:
        assert 0 < each["score"] <= 1
        assert -1 <= each["cosine"] <= 1
    for each in by_words["operators"]:
        assert each["score"] == each["bm25"] > 0
        assert "cosine" not in each


async def test_chinese_is_searched_by_words_alone(crib: Any) -> None:
    found = await crib.call("retrieve_operators", intent="按时长过滤视频")

    assert found["trace"][0]["searcher"] == "bm25"
    assert all(each["score"] == each["bm25"] for each in found["operators"])


async def test_filters_leave_only_operators_that_have_them_all(crib: Any) -> None:
    found = await crib.call(
        "retrieve_operators", intent="filter", op_type="filter", tags=["Image", "gpu"], top_k=100
    )

    assert found["operators"]
    for each in found["operators"]:
        assert each["type"] == "filter"
        assert {"image", "gpu"} <= set(each["tags"])
    assert found["candidates"] >= len(found["operators"])


@pytest.mark.parametrize("mode", ["auto", "bm25", "regex"])
async def test_filters_that_nothing_has_leave_an_empty_list(crib: Any, mode: str) -> None:
    found = await crib.call("retrieve_operators", intent="filter", tags=["no-such"], mode=mode)

    assert (found["operators"], found["candidates"]) == ([], 0)


async def test_a_pattern_finds_names_and_tells_no_score(crib: Any) -> None:
    found = await crib.call("retrieve_operators", intent="^document_.*hash", mode="regex")

    assert _names(found) == [
        "document_minhash_deduplicator",
        "document_minhash_deduplicator_with_uid",
        "document_simhash_deduplicator",
    ]
    assert not any("score" in each for each in found["operators"])


async def test_a_pattern_that_is_none_is_refused(crib: Any) -> None:
    kind, told = await crib.failure("retrieve_operators", intent="(a", mode="regex")

    assert kind == "invalid_arguments"
    assert "'(a' is no regular expression" in told


async def test_a_pattern_without_an_end_is_ended(crib: Any) -> None:
    kind, _ = await crib.failure("retrieve_operators", intent=r"^(\w+\s?)*$(?!.)x", mode="regex")

    assert kind == "timeout"


async def test_without_a_model_the_search_by_one_says_what_to_set(crib: Any) -> None:
    for mode in ("auto", "llm"):
        kind, told = await crib.failure("retrieve_operators_api", intent="dedup", mode=mode)

        assert kind == "unavailable"
        assert "summaries.url" in told


CHOSEN = (
    "1. image_deduplicator 70",
    "`ray_image_deduplicator` - 90",
    "no_such_operator 99",
    "video_deduplicator 0",
)


def _chat(answer: str) -> str:
    message = {"role": "assistant", "content": answer}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})


@pytest.mark.parametrize("mode", ["auto", "llm"])
async def test_a_model_chooses_among_operators_that_there_are(
    open_crib: Opener, site: Any, mode: str
) -> None:
    site.serve("/v1/chat/completions", _chat("\n".join(CHOSEN)))
    url = f"http://{site.address}/v1"
    async with open_crib(summaries__url=url, summaries__model="made-up") as crib:
        found = await crib.call(
            "retrieve_operators_api", intent="remove duplicate images", mode=mode
        )

    assert [(each["name"], each["score"]) for each in found["operators"]] == [
        ("ray_image_deduplicator", 90),
        ("image_deduplicator", 70),
    ]
    assert found["trace"][-1] == {"searcher": "llm", "found": 2, "note": "made-up"}
    (asked,) = site.asked
    assert (b"text_length_filter" in asked[3]) == (mode == "llm")


async def test_a_model_without_an_answer_leaves_what_words_found(
    open_crib: Opener, site: Any
) -> None:
    site.serve("/v1/chat/completions", "{}")
    url = f"http://{site.address}/v1"
    async with open_crib(summaries__url=url, summaries__model="made-up") as crib:
        found = await crib.call("retrieve_operators_api", intent="remove duplicate images")
        kind, _ = await crib.failure("retrieve_operators_api", intent="images", mode="llm")

    assert "image_deduplicator" in _names(found)
    assert found["trace"][-1]["note"] == "the model gave no answer"
    assert kind == "upstream_failed"


async def test_an_operator_is_told_whole(crib: Any) -> None:
    info = await crib.call("get_operator_info", operator_name="text_length_filter")

    assert info["resolved"] == "exact"
    assert info["type"] == "filter"
    assert info["executors"] == ["default", "ray", "ray_partitioned"]
    (least,) = (each for each in info["parameters"] if each["name"] == "min_len")
    assert least["default"] == 10
    assert least["value_schema"] == {"type": "integer"}
    assert {"text_key", "reversed_range"} <= set(info["common_parameters"])


@pytest.mark.parametrize(
    ("written", "name", "how"),
    [
        ("Document_Deduplicator", "document_deduplicator", "case"),
        ("TextLengthFilter", "text_length_filter", "alphanumeric"),
        ("text-length filter", "text_length_filter", "alphanumeric"),
        ("text_lenght_filter", "text_length_filter", "fuzzy"),
    ],
)
async def test_a_name_is_understood_and_it_is_said_how(
    crib: Any, written: str, name: str, how: str
) -> None:
    info = await crib.call("get_operator_info", operator_name=written)

    assert (info["name"], info["resolved"]) == (name, how)


@pytest.mark.parametrize("written", ["video_motion_score_raft", "dedup", "一"])
async def test_a_name_that_may_be_several_or_none_is_not_guessed(crib: Any, written: str) -> None:
    kind, told = await crib.failure("get_operator_info", operator_name=written)

    assert kind == "not_found"
    assert repr(written) in told


async def test_the_catalogue_is_read_in_pages(crib: Any) -> None:
    names: list[str] = []
    cursor = ""
    while True:
        page = await crib.call("list_operator_catalog", limit=60, cursor=cursor)
        names += _names(page)
        if "next_cursor" not in page:
            break
        cursor = page["next_cursor"]

    assert len(names) == len(set(names)) == page["total"] > 200
    assert names == sorted(names)


async def test_parameters_are_listed_where_they_are_asked_for(crib: Any) -> None:
    page = await crib.call("list_operator_catalog", op_type="selector", include_parameters=True)
    plain = await crib.call("list_operator_catalog", op_type="selector")

    assert all(each["type"] == "selector" for each in page["operators"])
    assert any(each["parameters"] for each in page["operators"])
    assert not any("parameters" in each for each in plain["operators"])


async def test_tags_that_no_operator_has_list_none(crib: Any) -> None:
    page = await crib.call("list_operator_catalog", tags=["text", "no-such"])

    assert page["operators"] == []
    assert page["total"] == 0
