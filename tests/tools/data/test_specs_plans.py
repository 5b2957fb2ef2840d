import json
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it ships no types

from tools.data.recipe import Plan

PARTS: dict[str, Any] = {
    "user_intent": "keep what is long enough, once",
    "dataset_spec": {"dataset_path": "in.jsonl", "export_path": "out.jsonl"},
    "process_spec": {
        "operators": [
            {"name": "text_length_filter", "params": {"min_len": 5}},
            {"name": "document_deduplicator"},
        ]
    },
    "system_spec": {"np": 1, "open_tracer": True},
}


@pytest.fixture
async def plan(crib: Any) -> dict[str, Any]:
    rows = "".join(f"{json.dumps({'text': f'row {each}'})}\n" for each in range(3))
    (crib.root / "in.jsonl").write_text(rows, encoding="utf-8")
    assembled = await crib.call("assemble_plan", **PARTS)
    found: dict[str, Any] = assembled["plan"]
    return found


async def test_valid_parts_make_a_plan_that_a_person_is_asked_about(
    crib: Any, plan: dict[str, Any]
) -> None:
    assert plan["approval_required"]
    assert (await crib.call("plan_validate", plan=plan))["valid"]


@pytest.mark.parametrize(
    ("part", "wrong", "told"),
    [
        ("dataset_spec", {"dataset_path": "no.jsonl", "export_path": "o.jsonl"}, "no.jsonl"),
        ("process_spec", {"operators": [{"name": "no_such"}]}, "'no_such' is unknown"),
        ("system_spec", {"open_trace": True}, "open_tracer"),
        ("system_spec", {"executor_type": "ray"}, "does not run with executor_type 'ray'"),
    ],
)
async def test_parts_that_are_wrong_or_do_not_go_together_make_none(
    crib: Any, plan: dict[str, Any], part: str, wrong: dict[str, Any], told: str
) -> None:
    kind, said = await crib.failure("assemble_plan", **{**PARTS, part: wrong})
    recipe = {**plan["recipe"], part.removesuffix("_spec"): wrong}
    checked = await crib.call("plan_validate", plan={**plan, "recipe": recipe})

    assert kind == "invalid_arguments"
    assert told in said
    assert not checked["valid"]
    assert told in " ".join(checked["errors"])


async def test_an_operator_that_the_release_refuses_needs_its_preflight_off(
    crib: Any, plan: dict[str, Any]
) -> None:
    step = {"name": "text_pair_similarity_filter", "params": {"text_key_second": "text"}}
    plan["recipe"]["process"]["operators"].append(step)

    strict = await crib.call("plan_validate", plan=plan)
    plan["recipe"]["system"]["strict_preflight"] = False
    lenient = await crib.call("plan_validate", plan=plan)

    assert "refuses `text_pair_similarity_filter`" in strict["errors"][0]
    assert lenient["valid"]


@pytest.mark.parametrize(
    ("system", "more", "told"),
    [
        ({}, {}, "A run that fails starts from the beginning"),
        ({"executor_type": "ray"}, {}, "`apply_recipe` refuses this: executor_type: ray does not"),
        (
            {},
            {"operators": [{"name": "image_shape_filter"}, {"name": "naive_grouper"}]},
            "with naive_grouper (grouper) is not given",
        ),
    ],
)
async def test_what_limits_a_plan_on_pictures_is_told_before_it_runs(
    crib: Any, plan: dict[str, Any], system: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    (crib.root / "own").mkdir()
    steps = [{"name": "text_length_filter"}]
    plan["recipe"] |= {"system": system, "process": {"operators": steps}}
    without = await crib.call("plan_validate", plan=plan)
    steps.append({"name": "image_shape_filter"})
    plan["recipe"]["process"] |= more
    checked = await crib.call("plan_validate", plan=plan)

    assert (without["warnings"], checked["errors"]) == ([], [])
    assert told in checked["warnings"][0]


async def test_a_plan_is_saved_as_the_configuration_of_data_juicer(
    crib: Any, plan: dict[str, Any]
) -> None:
    saved = await crib.call("plan_save", plan=plan, output_path="recipes/long.yaml")

    assert saved["plan_path"] == "recipes/long.yaml"
    text = (crib.root / "recipes" / "long.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == {
        "dataset_path": "in.jsonl",
        "export_path": "out.jsonl",
        "executor_type": "default",
        "np": 1,
        "open_tracer": True,
        "process": [{"text_length_filter": {"min_len": 5}}, {"document_deduplicator": None}],
    }
    assert Plan.from_yaml(text) == Plan.model_validate(plan)


async def test_a_plan_replaces_a_file_only_where_that_is_said(
    crib: Any, plan: dict[str, Any]
) -> None:
    await crib.call("plan_save", plan=plan, output_path="a.yaml")
    kind, _ = await crib.failure("plan_save", plan=plan, output_path="a.yaml")
    await crib.call("plan_save", plan=plan, output_path="a.yaml", overwrite=True)

    assert kind == "conflict"


async def test_a_plan_that_is_not_valid_is_not_saved(crib: Any, plan: dict[str, Any]) -> None:
    plan["recipe"]["process"]["operators"][0]["params"]["min_len"] = "five"
    kind, told = await crib.failure("plan_save", plan=plan, output_path="a.yaml")

    assert kind == "invalid_arguments"
    assert "min_len" in told
    assert not (crib.root / "a.yaml").exists()


@pytest.mark.parametrize("path", ["a.json", "../a.yaml", "/etc/a.yaml"])
async def test_a_plan_is_saved_beneath_the_root_as_yaml_only(
    crib: Any, plan: dict[str, Any], path: str
) -> None:
    kind, _ = await crib.failure("plan_save", plan=plan, output_path=path)

    assert kind in {"invalid_arguments", "outside_sandbox"}


@pytest.mark.slow
async def test_a_saved_plan_runs(workshop: Any) -> None:
    texts = ("A long text.", "a long text.", "No", "Another long text.")
    lines = (json.dumps({"id": at, "body": text}) for at, text in enumerate(texts))
    (workshop.root / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    data = await workshop.call(
        "build_dataset_spec", dataset_path="in.jsonl", export_path="clean/out.jsonl"
    )
    steps = [
        {"name": "TextLengthFilter", "params": {"min_len": 5}},
        {"name": "document deduplicator", "params": {"lowercase": True}},
    ]
    process = await workshop.call("build_process_spec", operators=steps)
    assembled = await workshop.call(
        "assemble_plan",
        user_intent="long texts, once",
        dataset_spec=data["dataset_spec"],
        process_spec=process["process_spec"],
        approval_required=False,
    )
    saved = await workshop.call("plan_save", plan=assembled["plan"], output_path="long.yaml")

    report = await workshop.call("apply_recipe", plan_path=saved["plan_path"])

    assert (report["rows_in"], report["rows_out"]) == (4, 2)
    written = (workshop.root / "clean" / "out.jsonl").read_text(encoding="utf-8")
    assert [json.loads(each)["id"] for each in written.splitlines()] == [0, 3]
