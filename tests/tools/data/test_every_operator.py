"""Every operator on texts and every key of the system spec: it runs here, or says why not."""

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tools.data.catalogue.catalogue import bundled
from tools.data.running.environment import DataEnvironment

pytestmark = pytest.mark.data

SECTION = "\\section{One}\nEnd\n\\bibliography{x}"
TEXTS = [
    "The bowline makes a loop that does not slip, even under load.",
    "the bowline makes a loop that does not slip, even under load.",
    "Mail ann@example.org or see https://example.org/a from 192.0.2.7 now.",
    *("<table><tr><th>Flour</th></tr><tr><td>&amp;</td></tr></table>", "汉语很有意思。 \uff21"),
    *("x" * 60 + " short", "shit shit shit", "One sentence. Another sentence. One sentence."),
    "/* Copyright us */ code\u00a0here ## ●",
    "\\newcommand{\\knot}{bowline}\nThe \\knot.\n% A comment\n" + SECTION,
    "a b c\n1 2 3\n4 5 6\nend",
]
MESSAGES = [
    {"role": "user", "name": "ann", "content": "Try it"},
    {"role": "tool", "name": "bash", "content": "Error: it failed"},
]
ALL = list(range(len(TEXTS)))


@dataclass(frozen=True)
class Case:
    """How an operator is tried.

    Attributes:
        params: Its parameters.
        left: The numbers of the rows that are left; None where that is left to chance.
        texts: Texts of rows afterwards, by their numbers.
        holds: What is in the result elsewhere.
        before: Operators that are tried in the same run, before it: their parameters, and how many
            rows each leaves. Such a run costs seconds where `dj-process` is needed.
    """

    params: dict[str, Any] = field(default_factory=dict)
    left: list[Any] | None = field(default_factory=lambda: ALL)
    texts: dict[int, str] = field(default_factory=dict)
    holds: str = ""
    before: dict[str, tuple[dict[str, Any], int]] = field(default_factory=dict)


CLEANED = {2: "Mail  or see  from 192.0.2.7 now."}
SHORT_FIRST = {"field_key": "id", "lower_rank": 1, "upper_rank": 3}
UPPER = "lambda sample: {**sample, 'text': sample['text'].upper()}"

CASES = {
    "agent_bad_case_signal_mapper": Case(holds='"agent_bad_case_tier": "none"'),
    "agent_dialog_normalize_mapper": Case(holds='"query": "Try it"'),
    "agent_tool_type_mapper": Case(holds='"primary_tool_type": null'),
    "alphanumeric_filter": Case({"min_ratio": 0.8}, [5, 6, 7]),
    "average_line_length_filter": Case({"min_len": 10}, [0, 1, 2, 3, 5, 6, 7, 8, 9]),
    "character_repetition_filter": Case(left=[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]),
    "chinese_convert_mapper": Case(texts={4: "漢語很有意思。 \uff21"}),
    "clean_copyright_mapper": Case(texts={8: " code\u00a0here ## ●"}),
    "clean_email_mapper": Case(texts={2: "Mail  or see https://example.org/a from 192.0.2.7 now."}),
    "clean_html_mapper": Case(texts={3: "Flour&"}),
    "clean_ip_mapper": Case(
        texts={2: "Mail ann@example.org or see https://example.org/a from  now."}
    ),
    "clean_links_mapper": Case(texts={2: "Mail ann@example.org or see  from 192.0.2.7 now."}),
    "document_deduplicator": Case({"lowercase": True}, [0, *ALL[2:]]),
    "document_minhash_deduplicator": Case(left=[0, *range(2, 11)]),
    "document_minhash_deduplicator_with_uid": Case(left=[0, *range(2, 11)]),
    "document_simhash_deduplicator": Case(left=[0, *range(2, 11)]),
    "download_file_mapper": Case({"download_field": "text", "save_field": "file"}),
    "expand_macro_mapper": Case(texts={9: TEXTS[9].replace("\\knot", "bowline")}),
    "extract_tables_from_html_mapper": Case(holds='[[["Flour"], ["&"]]]'),
    "fix_unicode_mapper": Case(texts={4: "汉语很有意思。 A"}),
    "flagged_words_filter": Case(left=[0, 1, 2, 3, 4, 5, 7, 8, 9, 10]),
    "frequency_specified_field_selector": Case(
        {"field_key": "kind", "topk": 1}, [1, 2, 4, 5, 7, 8, 10]
    ),
    "fused_sequential_batch_op": Case(
        {"op_specs": [{"class_name": "clean_links_mapper"}, {"class_name": "clean_email_mapper"}]},
        texts=CLEANED,
    ),
    "general_field_filter": Case({"filter_condition": "id > 3"}, ALL[4:]),
    "general_fused_op": Case(
        {"fused_op_list": [{"clean_links_mapper": {}}, {"clean_email_mapper": {}}]}, texts=CLEANED
    ),
    "human_preference_annotation_mapper": Case(),
    "key_value_grouper": Case(
        {"group_by_keys": ["kind"]},
        [[0, 3, 6, 9], [1, 2, 4, 5, 7, 8, 10]],
        texts={0: "", 1: "", 7: TEXTS[7]},  # by the deduplicator of lines
        before={
            "document_line_deduplicator": ({"frequency_threshold": 1, "lowercase": True}, len(ALL)),
            "naive_grouper": ({}, 1),
            "naive_reverse_grouper": ({}, len(ALL)),
        },
    ),
    "language_id_score_filter": Case({"lang": "zh", "min_score": 0.5}, [4]),
    "latex_merge_tex_mapper": Case({"compressed_file_key": "kind"}),
    "maximum_line_length_filter": Case({"max_len": 64}, [0, 1, 3, 6, 7, 8, 9]),
    "nlpaug_en_mapper": Case({"delete_random_word": True}, sorted([*ALL, *ALL])),
    "nlpcda_zh_mapper": Case({"replace_homophone_char": True}),
    "perplexity_filter": Case(),
    "pii_redaction_mapper": Case(holds="Mail [EMAIL_REDACTED] or see"),
    "punctuation_normalization_mapper": Case(texts={4: "汉语很有意思. \uff21"}),
    "python_file_mapper": Case(),
    "python_lambda_mapper": Case({"lambda_str": UPPER}, texts={0: TEXTS[0].upper()}),
    "random_selector": Case({"select_num": 3}, None),
    "range_specified_field_selector": Case(SHORT_FIRST, [2, 1]),
    "remove_bibliography_mapper": Case(texts={9: TEXTS[9].partition("\\bib")[0]}),
    "remove_comments_mapper": Case(texts={9: TEXTS[9].replace("% A comment\n", "")}),
    "remove_header_mapper": Case(
        {"drop_no_head": False},
        texts={0: TEXTS[0], 9: "\\section" + TEXTS[9].split("\\section")[1]},
    ),
    "remove_long_words_mapper": Case({"max_len": 20}, texts={5: "short"}),
    "remove_non_chinese_character_mapper": Case(texts={4: "汉语很有意思。 "}),
    "remove_repeat_sentences_mapper": Case(texts={7: "One sentence. Another sentence."}),
    "remove_specific_chars_mapper": Case(texts={8: TEXTS[8].rstrip("●")}),
    "remove_table_text_mapper": Case(texts={10: "a b c\nend"}),
    "remove_words_with_incorrect_substrings_mapper": Case(
        texts={2: "Mail ann@example.org or see from 192.0.2.7 now."}
    ),
    "replace_content_mapper": Case(
        {"pattern": "loop", "repl": "knot"}, texts={0: TEXTS[0].replace("loop", "knot")}
    ),
    "s3_download_file_mapper": Case({"download_field": "text", "save_field": "file"}),
    "s3_upload_file_mapper": Case({"s3_bucket": "b", "upload_field": "text"}),
    "sentence_split_mapper": Case(texts={7: "One sentence.\nAnother sentence.\nOne sentence."}),
    "special_characters_filter": Case(left=[0, 1, 4, 5, 6, 7]),
    "specified_field_filter": Case(
        {"field_key": "kind", "target_value": ["a"]}, [1, 2, 4, 5, 7, 8, 10]
    ),
    "specified_numeric_field_filter": Case({"field_key": "id", "min_value": 4}, ALL[4:]),
    "stopwords_filter": Case(left=[0, 1, 2, 7, 8, 9, 10]),
    "suffix_filter": Case({"suffixes": [".csv"]}, []),
    "tags_specified_field_selector": Case(
        {"field_key": "kind", "target_tags": ["b"]}, [0, 3, 6, 9]
    ),
    "text_action_filter": Case(),
    "text_entity_dependency_filter": Case(),
    "text_length_filter": Case({"min_len": 50}, [0, 1, 2, 3, 5, 9]),
    "token_num_filter": Case(),
    "tool_success_tagger_mapper": Case(holds='"tool_fail_count": 1'),
    "topk_specified_field_selector": Case({"field_key": "id", "topk": 2}, [10, 9]),
    "usage_counter_mapper": Case(holds='"total_tokens": 7'),
    "whitespace_normalization_mapper": Case(texts={8: TEXTS[8].replace("\u00a0", " ")}),
    "word_repetition_filter": Case({"rep_len": 1, "max_ratio": 0.5}, [*ALL[:6], 8, 9, 10]),
    "words_num_filter": Case({"min_num": 10}, [0, 1]),
}
ELSEWHERE = {"image", "audio", "video", "gpu", "api", "vllm"}
"""Tags of operators that are no matter of this test."""

KEYS: list[dict[str, Any]] = [
    {
        "open_tracer": True,
        "trace_num": 2,
        "trace_keys": ["id"],
        "export_in_parallel": True,
        "use_checkpoint": True,
        "np": 2,
    },
    {"op_fusion": True, "adaptive_batch_size": True, "np": 2},
    {"op_fusion": True, "fusion_strategy": "greedy"},
    {"use_cache": True, "np": 2},
    {"use_cache": False, "skip_op_error": True, "turbo": True, "open_monitor": True},
    {"keep_stats_in_res_ds": True, "keep_hashes_in_res_ds": True},
    {
        "cache_compress": "gzip",
        "temp_dir": "kept",
        "ds_cache_dir": "cache",
        "use_dag": True,
        "save_stats_in_one_file": True,
        "export_original_dataset": True,
        "debug": True,
        "strict_preflight": False,
        "auto_op_parallelism": False,
        "mapper_fusion": False,
        "event_logging": {"enabled": True},
        "percentiles": [0.5],
        "project_name": "tried",
    },
    {"open_insight_mining": True},
    {"encrypt_before_export": True},
]


@dataclass(frozen=True)
class Ran:
    """What came of a run: the rows that are left, and how many each operator left."""

    left: list[dict[str, Any]]
    counts: dict[str, int]


async def run(workshop: Any, process: list[dict[str, Any]], **keys: Any) -> Ran:
    """Runs operators on the rows."""
    rows = [
        {
            "id": number,
            "kind": "a" if number % 3 else "b",
            "text": text,
            "messages": MESSAGES,
            "usage": {"total_tokens": 7},
            "__dj__uid": number,
        }
        for number, text in enumerate(TEXTS)
    ]
    written = "".join(json.dumps(each) + "\n" for each in rows)
    (workshop.root / "raw.jsonl").write_text(written)
    shutil.rmtree(workshop.root / "out", ignore_errors=True)
    plan = {
        "dataset_path": "raw.jsonl",
        "export_path": "out/out.jsonl",
        "text_keys": ["text"],
        "skip_op_error": False,
        "keep_stats_in_res_ds": True,
        "np": 1,
        "process": process,
        **keys,
    }
    plan_text = f"# Try it\n# approval_required: false\n{json.dumps(plan)}"
    (workshop.root / "plan.yaml").write_text(plan_text)
    told = await workshop.client.call_tool(
        "apply_recipe", {"plan_path": "plan.yaml", "confirm": True}
    )
    if told.is_error:
        raise RuntimeError(told.content[0].text)
    (out,) = (workshop.root / "out").iterdir()
    left = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return Ran(
        left, {each["operator"]: each["rows_out"] for each in told.structured_content["steps"]}
    )


def texts_of(row: dict[str, Any]) -> list[tuple[int, str]]:
    """Returns the number and the text of a row, or of each in a group."""
    if isinstance(row["id"], list):
        return list(zip(row["id"], row["text"], strict=True))
    return [(row["id"], row["text"])]


def test_all_operators_on_texts_are_tried() -> None:
    wanted = {
        each.name
        for each in bundled().operators.values()
        if not ELSEWHERE & set(each.tags) and "default" in each.modes
    }
    assert wanted == {*CASES, *(name for case in CASES.values() for name in case.before)}


@pytest.mark.parametrize("name", CASES)
async def test_an_operator_runs_or_the_catalogue_says_why_not(workshop: Any, name: str) -> None:
    case, operator = CASES[name], bundled().operators[name]
    process = [{each: params} for each, (params, _) in case.before.items()]
    process.append({name: case.params})
    if operator.runs != "here":
        assert operator.why_not
        with suppress(RuntimeError):  # or it leaves out what it cannot do
            left = (await run(workshop, process)).left
            assert all(each["text"] in {"", TEXTS[each["id"]]} for each in left)
        return
    ran = await run(workshop, process)
    left = ran.left
    assert not operator.why_not
    for other, (_, count) in case.before.items():
        known = bundled().operators[other]
        assert (known.runs, known.why_not, ran.counts[other]) == ("here", None, count), other
    if case.left is None:
        assert len(left) == case.params["select_num"]
    else:
        assert [each["id"] for each in left] == case.left
    texts = dict(pair for each in left for pair in texts_of(each))
    assert texts | case.texts == texts
    assert case.holds in json.dumps(left, ensure_ascii=False)


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: "+".join(keys)[:60])
async def test_a_key_of_the_system_spec_works_or_the_catalogue_says_why_not(
    workshop: Any, keys: dict[str, Any]
) -> None:
    process: list[dict[str, Any]] = [
        {"clean_links_mapper": {}},
        {"text_length_filter": {"min_len": 40}},
        {"words_num_filter": {"min_num": 5}},
        {"document_deduplicator": {"lowercase": True}},
    ]
    options = bundled().system_options
    if any(options[key].why_not for key in keys if key in options):
        with pytest.raises(RuntimeError):
            await run(workshop, process, **keys)
        return
    ran = await run(workshop, process, **keys)
    assert sorted(each["id"] for each in ran.left) == [0, 2, 7, 9]


async def test_processes_of_a_recipe_connect_unconfined_too(
    open_crib: Any, data_juicer: DataEnvironment
) -> None:
    async with open_crib(system__sandbox="off") as crib:
        (crib.app.settings.data_dir / "data-juicer").symlink_to(data_juicer.path)
        ran = await run(crib, [{"words_num_filter": {"min_num": 10}}], open_tracer=True, np=2)
    assert [each["id"] for each in ran.left] == [0, 1]
