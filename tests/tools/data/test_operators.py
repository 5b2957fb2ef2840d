import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from storage.index.embedders.endpoint import MAX_ANSWER_BYTES
from tools.data.catalogue.search import FLOOR, bundled_index

Opener = Callable[..., AbstractAsyncContextManager[Any]]
FOLDER = Path(__file__).with_name("sets")
SETS = json.loads(FOLDER.joinpath("intents.json").read_text("utf-8"))
FOREIGN = [
    intent
    for parts in json.loads(FOLDER.joinpath("foreign.json").read_text("utf-8")).values()
    for part in parts.values()
    for intent in part
]
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


@pytest.mark.parametrize(
    "intent",
    [
        *("drop exact duplicates", "remove identical rows", "exact dedup", "same text twice"),
        *("去除完全重复的文档", "精确去重"),
    ],
)
async def test_exact_duplicates_find_the_exact_deduplicator_first(crib: Any, intent: str) -> None:
    found = await crib.call("retrieve_operators", intent=intent)

    assert _names(found)[0] == "document_deduplicator"


@pytest.mark.parametrize("intent", ["near-duplicate texts", "almost the same pages", "近似去重"])
async def test_near_duplicates_find_hashes_first(crib: Any, intent: str) -> None:
    found = await crib.call("retrieve_operators", intent=intent)

    assert "hash" in _names(found)[0]


async def test_a_medium_and_an_executor_come_first_only_if_they_are_named(crib: Any) -> None:
    firsts = {
        "deduplicate": "document_deduplicator",
        "deduplicate images": "image_deduplicator",
        "deduplicate videos": "video_deduplicator",
        "deduplicate images with Ray": "ray_image_deduplicator",
        "在集群上给文档去重": "ray_document_deduplicator",
    }
    for intent, first in firsts.items():
        found = await crib.call("retrieve_operators", intent=intent)

        assert _names(found)[0] == first, intent


@pytest.mark.parametrize(
    "intent",
    [
        *FOREIGN[:8],
        "重置我的密码",
        "Passwort zurücksetzen",
        "qqxyz",
        "a",
        "the of and",
        ".",
        "?!",
        "的",
    ],
)
async def test_what_no_operator_does_finds_nothing_and_says_what_to_do(
    crib: Any, intent: str
) -> None:
    found = await crib.call("retrieve_operators", intent=intent)

    assert found["operators"] == []
    assert "list_operator_catalog" in found["next_step"]
    assert [each["searcher"] for each in found["trace"]] == ["hybrid"]


async def test_one_floor_keeps_operators_from_foreign_intents_and_few_from_others() -> None:
    index = bundled_index()
    nothing = [
        max(each.score for each in index.search(intent).values()) < FLOOR for intent in FOREIGN
    ]
    right = [
        max(index.search(intent)[name].score for name in names) >= FLOOR
        for parts in SETS.values()
        for intents in parts.values()
        for intent, names in intents
    ]

    assert sum(nothing) >= 0.9 * len(nothing)
    assert sum(right) >= 0.95 * len(right)


async def test_a_score_is_the_same_whatever_else_is_found(crib: Any) -> None:
    intent = "remove duplicate images"
    everything = await crib.call("retrieve_operators", intent=intent, top_k=50)
    (alone,) = (await crib.call("retrieve_operators", intent=intent, tags=["image"], top_k=1))[
        "operators"
    ]
    scores = {each["name"]: each["score"] for each in everything["operators"]}

    assert scores[alone["name"]] == alone["score"] > 0.6
    assert all(0 < score <= 1 for score in scores.values())


async def test_words_alone_give_no_similarity(crib: Any) -> None:
    for mode, searcher in (("bm25", "bm25"), ("auto", "hybrid")):
        found = await crib.call("retrieve_operators", intent="按时长过滤视频", mode=mode)

        assert found["trace"][0]["searcher"] == searcher
        assert all(each["bm25"] > 0 for each in found["operators"])
        assert all(("cosine" in each) == (mode == "auto") for each in found["operators"])


async def test_an_operator_that_cannot_run_here_is_marked_and_comes_after_its_equals(
    crib: Any,
) -> None:
    found = await crib.call("retrieve_operators", intent="filter by perplexity", top_k=5)
    (model,) = (each for each in found["operators"] if each["name"] == "llm_perplexity_filter")
    text = await crib.text("retrieve_operators", intent="blur the faces in images")
    info = await crib.text("get_operator_info", operator_name="llm_perplexity_filter")

    assert _names(found)[0] == "perplexity_filter"
    assert (model["runs"], bool(model["why_not"])) == ("no", True)
    assert "image_face_blur_mapper" in text
    assert "(needs --full)" in text
    assert "cannot run here: " in info


async def test_auto_tries_an_intent_as_a_pattern_if_it_looks_like_one(crib: Any) -> None:
    found = await crib.call("retrieve_operators", intent=r"^imgd\w+")

    assert _names(found)
    assert all(name.startswith("imgdiff_") for name in _names(found))


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
    assert "'(a' is not a regular expression" in told


@pytest.mark.slow
async def test_a_pattern_without_an_end_is_ended(crib: Any) -> None:
    kind, _ = await crib.failure("retrieve_operators", intent=r"^(\w+\s?)*$(?!.)x", mode="regex")

    assert kind == "timeout"


async def test_without_a_model_the_search_by_one_says_what_to_set(crib: Any) -> None:
    for mode in ("auto", "llm"):
        kind, told = await crib.failure("retrieve_operators_api", intent="dedup", mode=mode)

        assert kind == "unavailable"
        assert "summaries.url" in told


GOOD = [
    {"name": "image_deduplicator", "score": 70},
    {"name": "ray_image_deduplicator", "score": 90},
    {"name": "video_deduplicator", "score": 0},
]


def _chat(answer: str | None, finish_reason: str = "stop") -> str:
    message = {"role": "assistant", "content": answer}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish_reason}]})


@pytest.fixture
async def asked(open_crib: Opener, site: Any) -> AsyncIterator[Any]:
    """The product with a model that answers what the site serves."""
    url = f"http://{site.address}/v1"
    async with open_crib(summaries__url=url, summaries__model="made-up") as opened:
        yield opened


@pytest.mark.parametrize("mode", ["auto", "llm"])
@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"operators": GOOD}),
        json.dumps(GOOD),
        f"Here they are:\n```json\n{json.dumps({'operators': GOOD}, indent=2)}\n```\n",
    ],
)
async def test_a_model_chooses_among_operators(
    asked: Any, site: Any, mode: str, answer: str
) -> None:
    site.serve("/v1/chat/completions", _chat(answer))
    found = await asked.call("retrieve_operators_api", intent="remove duplicate images", mode=mode)

    assert [(each["name"], each["score"]) for each in found["operators"]] == [
        ("ray_image_deduplicator", 0.9),
        ("image_deduplicator", 0.7),
    ]
    assert found["trace"][-1] == {"searcher": "llm", "found": 2, "note": "made-up"}
    assert (b"text_length_filter" in site.asked[0][3]) == (mode == "llm")


async def test_a_model_that_chooses_none_finds_nothing(asked: Any, site: Any) -> None:
    site.serve("/v1/chat/completions", _chat('{"operators": []}'))
    found = await asked.call("retrieve_operators_api", intent="bake bread", mode="llm")

    assert found["operators"] == []
    assert found["next_step"]


def _rated(name: str, score: str) -> str:
    return _chat(f'{{"operators": [{{"name": "{name}", "score": {score}}}]}}')


@pytest.mark.parametrize("mode", ["auto", "llm"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (_chat("image_deduplicator 90"), "It begins 'image_deduplicator 90'"),
        (_chat("I'm sorry, I cannot help with that."), "I cannot help"),
        (_chat('{"operators": [{"name": "image_dedup'), "Invalid JSON"),
        (_chat('{"answer": 42}'), "operators: Field required"),
        (_chat("{}"), "operators: Field required"),
        (_chat('["image_deduplicator"]'), "operators: 0"),
        (_rated("no_such_operator", "50"), "'no_such_operator' is not among the operators"),
        (_rated("image_deduplicator", "101"), "score"),
        (_rated("image_deduplicator", "-1"), "score"),
        (_rated("image_deduplicator", "NaN"), "score"),
        (_rated("image_deduplicator", "true"), "score"),
        (_rated("image_deduplicator", '"high"'), "score"),
        (_rated("image_deduplicator", "null"), "score"),
        (_chat(""), "its message has no text"),
        (_chat(None), "its message has no text"),
        (_chat("No.", "content_filter"), "the model made-up refused"),
        ("<html>Bad gateway</html>", "<html>Bad gateway"),
        ('{"choices": []}', "choices"),
        ("{}", "'{}'"),
    ],
)
async def test_an_answer_that_is_not_understood_is_an_error(
    asked: Any, site: Any, body: str, problem: str, mode: str
) -> None:
    site.serve("/v1/chat/completions", body)
    kind, message = await asked.failure("retrieve_operators_api", intent="images", mode=mode)

    assert kind == "upstream_failed"
    assert problem in message


async def test_an_endpoint_that_fails_is_an_error(asked: Any, site: Any) -> None:
    for status, body in ((401, "who are you"), (400, "no such model"), (302, "elsewhere")):
        site.serve("/v1/chat/completions", body, status=status)
        kind, message = await asked.failure("retrieve_operators_api", intent="images")

        assert kind == "upstream_failed"
        assert f"answered {status}: {body}" in message


async def test_an_answer_that_is_too_large_is_an_error(asked: Any, site: Any) -> None:
    site.serve("/v1/chat/completions", b" " * (MAX_ANSWER_BYTES + 1))
    kind, message = await asked.failure("retrieve_operators_api", intent="images")

    assert kind == "upstream_failed"
    assert "endless" in message


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


async def test_keys_of_the_system_are_listed_without_those_of_the_other_parts(crib: Any) -> None:
    found = await crib.call("list_system_config")
    names = [each["name"] for each in found["options"]]

    assert {"executor_type", "np", "open_tracer", "partition.mode"} <= set(names)
    assert not {"dataset_path", "export_path", "process", "custom_operator_paths"} & set(names)


async def test_keys_are_chosen_by_how_they_begin(crib: Any) -> None:
    found = await crib.call("list_system_config", prefix="checkpoint.", include_descriptions=True)

    assert {each["name"] for each in found["options"]} == {
        "checkpoint.enabled",
        "checkpoint.strategy",
        "checkpoint.n_ops",
        "checkpoint.op_names",
    }
    assert all(each["description"] for each in found["options"])


async def test_formatters_tell_what_they_read(crib: Any) -> None:
    found = await crib.call("list_dataset_formatters")
    suffixes = {each["name"]: each["suffixes"] for each in found["formatters"]}

    assert ".jsonl" in suffixes["JsonFormatter"]
    assert suffixes["EmptyFormatter"] == []


async def test_ways_to_load_are_those_of_the_executor(crib: Any) -> None:
    everything = await crib.call("list_dataset_load_strategies")
    ray = await crib.call("list_dataset_load_strategies", executor_type="ray_partitioned")

    assert {each["executor_type"] for each in ray["strategies"]} == {"ray"}
    assert len(everything["strategies"]) > len(ray["strategies"])
    (hub,) = (each for each in ray["strategies"] if each["source"] == "huggingface")
    assert not hub["is_implemented"]
