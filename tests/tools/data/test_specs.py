import json
from pathlib import Path
from typing import Any

import pytest

FILTER = {"name": "text_length_filter", "params": {"min_len": 5, "max_len": 100}}
DATASET = {"dataset_path": "in.jsonl", "export_path": "out.jsonl"}


@pytest.fixture
def rows(crib: Any) -> Path:
    """A file of rows beneath the root, whose texts stand under "content"."""
    path: Path = crib.root / "in.jsonl"
    made = ({"id": str(each), "content": f"A text, number {each}."} for each in range(5))
    path.write_text("".join(f"{json.dumps(each)}\n" for each in made), encoding="utf-8")
    return path


async def test_the_key_of_the_texts_is_found(crib: Any, rows: Path) -> None:
    built = await crib.call("build_dataset_spec", **DATASET)

    assert built["dataset_spec"]["text_keys"] == ["content"]
    assert "'content', which has the longest texts" in built["warnings"][0]
    again = await crib.call("validate_dataset_spec", dataset_spec=built["dataset_spec"])
    assert again == {"valid": True, "errors": [], "warnings": []}


async def test_a_key_that_is_named_is_kept(crib: Any, rows: Path) -> None:
    built = await crib.call("build_dataset_spec", **DATASET, text_keys=["id"])

    assert built["dataset_spec"]["text_keys"] == ["id"]
    assert built["warnings"] == []


async def test_a_row_that_is_none_is_an_error_unless_it_is_to_be_left_out(
    crib: Any, rows: Path
) -> None:
    with rows.open("a", encoding="utf-8") as file:
        file.write('\n["no", "object"]\n{"id": "6", "content":\n')
    spec = {**DATASET, "text_keys": ["content"]}

    strict = await crib.call("validate_dataset_spec", dataset_spec=spec)
    lenient = await crib.call(
        "validate_dataset_spec", dataset_spec={**spec, "load_jsonl_lenient": True}
    )

    (error,) = strict["errors"]
    assert "'in.jsonl' contains what is not a row (line 7: " in error
    assert error.endswith(
        "Set load_jsonl_lenient to true, which leaves such rows out, or mend it there."
    )
    assert lenient["valid"]


async def test_several_places_are_built_with_their_shares(crib: Any, rows: Path) -> None:
    (crib.root / "other.csv").write_text("content,more\nx,y\n", encoding="utf-8")
    places = [{"path": "in.jsonl", "weight": 0.7}, {"path": "other.csv", "weight": 0.3}]
    built = await crib.call(
        "build_dataset_spec",
        export_path="out.parquet",
        dataset={"configs": places, "max_sample_num": 4},
        options={"keep_stats_in_res_ds": True},
    )

    spec = built["dataset_spec"]
    assert [each["weight"] for each in spec["dataset"]["configs"]] == [0.7, 0.3]
    assert spec["keep_stats_in_res_ds"] is True


WRONG_DATA: list[tuple[dict[str, Any], str]] = [
    ({"export_path": "out.jsonl"}, "there is none"),
    ({**DATASET, "generated_dataset_config": {"type": "EmptyFormatter", "length": 1}}, "one of"),
    ({**DATASET, "text_keys": ["text"]}, "text key 'text'; its keys are id, content"),
    ({**DATASET, "text_keys": []}, "`text_keys` is empty"),
    ({**DATASET, "export_path": "in.jsonl"}, "is what is read"),
    ({**DATASET, "export_path": "out.csv"}, "'csv'; with default it may be jsonl, json, parquet"),
    ({**DATASET, "export_path": "../out.jsonl"}, "leads out of the root"),
    ({**DATASET, "export_path": "out"}, "asks for ''"),
    ({**DATASET, "validators": [{"type": "no"}]}, "validators[0].type"),
    ({"dataset_path": "missing.jsonl", "export_path": "o.jsonl"}, "missing.jsonl"),
    ({"dataset_path": "empty.jsonl", "export_path": "o.jsonl"}, "has no row"),
    ({"dataset_path": "data.bin", "export_path": "o.jsonl"}, "No formatter reads 'data.bin'"),
    (
        {"export_path": "o.jsonl", "generated_dataset_config": {"type": "EmptyFormatter"}},
        "generated_dataset_config.length` is missing",
    ),
    ({"export_path": "o.jsonl", "generated_dataset_config": {"type": "No"}}, "'No'; send"),
]
PLACES: list[tuple[list[dict[str, Any]], str]] = [
    ([{"type": "remote", "path": "x"}], "cannot load remote;"),
    ([{"type": "remote", "source": "wiki", "path": "x"}], "cannot load remote/wiki"),
    ([{"type": "remote", "source": "s3", "path": "x"}], "send one with s3://"),
    ([{"type": "remote", "source": "huggingface"}], "configs[0].path` is missing"),
    ([{"type": "remote", "source": "huggingface", "path": "x", "spilt": "y"}], "spilt` is unknown"),
    ([{"path": "in.jsonl"}, {"type": "remote", "source": "huggingface", "path": "x"}], "mixes"),
]
WRONG_DATA += [
    ({"export_path": "o.jsonl", "dataset": {"configs": places}}, told) for places, told in PLACES
]


@pytest.mark.parametrize(("spec", "told"), WRONG_DATA)
async def test_data_that_cannot_be_read_or_written_are_not_valid(
    crib: Any, rows: Path, spec: dict[str, Any], told: str
) -> None:
    (crib.root / "empty.jsonl").touch()
    (crib.root / "data.bin").write_bytes(b"\0\1")

    checked = await crib.call("validate_dataset_spec", dataset_spec=spec)

    assert not checked["valid"]
    assert told in " ".join(checked["errors"])


async def test_a_dataset_spec_with_errors_is_not_built(crib: Any, rows: Path) -> None:
    kind, told = await crib.failure("build_dataset_spec", **{**DATASET, "export_path": "out.csv"})
    missing, _ = await crib.failure(
        "build_dataset_spec", **{**DATASET, "dataset_path": "missing.jsonl"}
    )
    unknown, _ = await crib.failure("build_dataset_spec", **DATASET, options={"exprot": 1})

    assert kind == unknown == "invalid_arguments"
    assert "The dataset spec is not valid" in told
    assert missing == "not_found"


async def test_on_ray_one_place_is_read_and_other_formats_are_written(
    crib: Any, rows: Path
) -> None:
    two = {"configs": [{"path": "in.jsonl"}, {"path": "in.jsonl"}]}
    spec = {"dataset": two, "export_path": "out.csv"}

    checked = await crib.call("validate_dataset_spec", dataset_spec=spec, executor_type="ray")

    assert checked["errors"] == ["`dataset.configs` has several places; ray reads one."]


async def test_names_of_operators_are_understood(crib: Any) -> None:
    steps = [{**FILTER, "name": "TextLengthFilter"}, {"name": "document_deduplicator"}]
    built = await crib.call("build_process_spec", operators=steps)

    names = [each["name"] for each in built["process_spec"]["operators"]]
    assert names == ["text_length_filter", "document_deduplicator"]
    assert built["warnings"] == ["'TextLengthFilter' was taken for `text_length_filter`."]


WRONG_STEPS: list[tuple[dict[str, Any], str]] = [
    ({"name": "text_length_filter", "params": {"min_len": "five"}}, "min_len` is 'five'; send"),
    ({"name": "text_length_filter", "params": {"min_len": True}}, "min_len` is True"),
    ({"name": "text_length_filter", "params": {"min_length": 5}}, "min_length` is unknown; did"),
    ({"name": "text_length_filter", "params": {"min_len": None}}, "min_len` is None"),
    ({"name": "text_length_filter", "params": {"text_key": 1}}, "text_key` is 1"),
    ({"name": "text_chunk_mapper", "params": {"max_len": 0}}, "max_len` is 0"),
    ({"name": "suffix_filter", "params": {"suffixes": [1]}}, "suffixes` is"),
    ({"name": "no_such_operator"}, "'no_such_operator' is unknown"),
]


@pytest.mark.parametrize(("step", "told"), WRONG_STEPS)
async def test_operators_that_would_not_run_are_not_valid(
    crib: Any, step: dict[str, Any], told: str
) -> None:
    spec = {"operators": [FILTER, step]}
    checked = await crib.call("validate_process_spec", process_spec=spec)
    kind, said = await crib.failure("build_process_spec", **spec)

    assert not checked["valid"]
    assert told in checked["errors"][0]
    assert (kind, told in said) == ("invalid_arguments", True)


@pytest.mark.parametrize(
    "step",
    [
        {"name": "text_length_filter", "params": {"min_len": 5.0, "reversed_range": True}},
        {"name": "alphanumeric_filter", "params": {"min_ratio": 0}},
        {"name": "suffix_filter", "params": {"suffixes": ".txt"}},
        {"name": "suffix_filter", "params": {"suffixes": [".txt", ".md"]}},
        {"name": "text_chunk_mapper", "params": {"max_len": None, "batch_size": 10}},
    ],
)
async def test_values_that_a_type_allows_are_valid(crib: Any, step: dict[str, Any]) -> None:
    checked = await crib.call("validate_process_spec", process_spec={"operators": [step]})

    assert checked["errors"] == []


async def test_only_the_name_that_the_release_has_is_valid(crib: Any) -> None:
    spec = {"operators": [{"name": "TextLengthFilter"}]}
    checked = await crib.call("validate_process_spec", process_spec=spec)

    assert "did you mean text_length_filter?" in checked["errors"][0]


async def test_bounds_between_which_nothing_is_are_told(crib: Any) -> None:
    step = {"name": "text_length_filter", "params": {"min_len": 50, "max_len": 5}}
    checked = await crib.call("validate_process_spec", process_spec={"operators": [step]})

    assert checked["valid"]
    assert "min_len 50 is above max_len 5, so nothing is kept" in checked["warnings"][0]


async def test_an_operator_of_ones_own_needs_its_file(crib: Any) -> None:
    (crib.root / "mine.py").write_text("pass\n", encoding="utf-8")
    spec = {"operators": [{"name": "my_mapper"}], "custom_operator_paths": ["mine.py"]}
    lost = {**spec, "custom_operator_paths": ["lost.py"]}

    found = await crib.call("validate_process_spec", process_spec=spec)
    missing = await crib.call("validate_process_spec", process_spec=lost)

    assert found["valid"]
    assert "one of your own" in found["warnings"][0]
    assert not missing["valid"]


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        ("document_deduplicator", "ray"),
        ("ray_document_deduplicator", "default"),
        ("ray_repartition_pipeline", "default"),
    ],
)
async def test_an_operator_that_an_executor_does_not_run_is_not_valid(
    crib: Any, name: str, executor: str
) -> None:
    spec = {"operators": [{"name": name}]}
    checked = await crib.call("validate_process_spec", process_spec=spec, executor_type=executor)

    assert f"does not run with executor_type '{executor}'" in checked["errors"][0]


@pytest.mark.parametrize("executor", ["default", "ray", "ray_partitioned"])
async def test_a_system_spec_is_built_for_each_executor(crib: Any, executor: str) -> None:
    options = {"open_tracer": True, "checkpoint.strategy": "every_op", "checkpoint.n_ops": 2}
    built = await crib.call("build_system_spec", executor_type=executor, np=2, options=options)

    spec = built["system_spec"]
    assert spec["executor_type"] == executor
    assert spec["checkpoint"] == {"strategy": "every_op", "n_ops": 2}
    checked = await crib.call("validate_system_spec", system_spec=spec)
    assert checked["valid"]


WRONG_SYSTEMS: list[tuple[dict[str, Any], str]] = [
    ({"open_trace": True}, "`open_trace` is unknown; did you mean `open_tracer`?"),
    ({"open_tracer": "yes"}, "`open_tracer` is 'yes'"),
    ({"export_path": "x"}, "`export_path` belongs to the dataset spec"),
    ({"process": []}, "`process` belongs to the process spec"),
    ({"checkpoint": {"strategy": "no"}}, "`checkpoint.strategy` is"),
    ({"fusion_strategy": "no"}, "`fusion_strategy` is 'no'"),
    ({"elastic_juicer_adaptive_batching": True}, "needs an executor_type that is on Ray"),
    ({"elastic_juicer_profile_seed": True}, "`elastic_juicer_profile_seed` needs"),
    ({"partition": {"mode": "manual", "size": 5, "num_of_partitions": 2}}, "not both"),
    (
        {"executor_type": "ray", "elastic_juicer_adaptive_batching": True, "op_fusion": True},
        "exclude each other",
    ),
]


@pytest.mark.parametrize(("spec", "told"), WRONG_SYSTEMS)
async def test_a_system_spec_that_cannot_be_read_is_not_valid(
    crib: Any, spec: dict[str, Any], told: str
) -> None:
    checked = await crib.call("validate_system_spec", system_spec=spec)

    assert not checked["valid"]
    assert told in " ".join(checked["errors"])


@pytest.mark.parametrize(
    ("options", "told"),
    [({"open_trace": True}, "open_tracer"), ({"np": "two"}, "np: Input should")],
)
async def test_a_system_spec_with_errors_is_not_built(
    crib: Any, options: dict[str, Any], told: str
) -> None:
    kind, said = await crib.failure("build_system_spec", options=options)

    assert kind == "invalid_arguments"
    assert told in said


async def test_a_key_that_cannot_be_used_here_is_a_warning_with_the_reason(crib: Any) -> None:
    options = {"encrypt_before_export": True, "open_insight_mining": False}
    built = await crib.call("build_system_spec", options=options)

    (warning,) = built["warnings"]
    assert warning.startswith(
        "`encrypt_before_export`: It needs the package cryptography and a key"
    )
