from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.anyio


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
