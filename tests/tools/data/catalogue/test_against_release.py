"""The catalogue, and what is valid by it, against Data-Juicer itself."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.data.catalogue.catalogue import bundled
from tools.data.checks.recipe import check_process, check_recipe
from tools.data.recipe import (
    DatasetMixture,
    DatasetSource,
    DatasetSpec,
    Plan,
    ProcessSpec,
    Recipe,
    Step,
    SystemSpec,
)
from tools.data.running.environment import DataEnvironment
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.slow

SIGNATURES = """
import inspect, json
import data_juicer.ops
from data_juicer.core.preflight import _get_valid_params
from data_juicer.ops.base_op import OPERATORS

told = {}
for name, cls in OPERATORS.modules.items():
    own = {
        each.name: [each.default is each.empty, repr(each.default)]
        for each in inspect.signature(cls.__init__).parameters.values()
        if each.name != "self" and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
    }
    known = sorted(_get_valid_params(cls))
    told[name] = {"own": own, "known": known, "modes": cls._supported_exec_modes}
print("\\n" + json.dumps(told))
"""
READ = """
import json, sys
from data_juicer.config import init_configs
from jsonargparse import namespace_to_dict

read = namespace_to_dict(init_configs(["--config", sys.argv[1]], load_configs_only=True))
print("\\n" + json.dumps(read, default=str))
"""
PREFLIGHT = """
import json, pathlib
import data_juicer.ops
from data_juicer.core.preflight import PipelineConfigError, pre_instantiation_check

refused = []
for name, parameter, value in json.loads(pathlib.Path("tries.json").read_text()):
    try:
        pre_instantiation_check([{name: {parameter: value}}])
    except PipelineConfigError:
        refused.append([name, parameter, value])
print("\\n" + json.dumps(refused))
"""
ONLY_ON_RAY = {"ray_repartition_pipeline"}
"""Operators that refuse the executor `default` when they run, though the release lists it."""

VALUES: tuple[object, ...] = ("x", True, 1, 0.5, ["a"], {"a": 1})
DATA = DatasetSpec(dataset_path="in.jsonl", export_path="out.jsonl", text_keys=["content"])
PLACES = DatasetMixture(
    configs=[DatasetSource(path="in.jsonl", weight=0.7), DatasetSource(path="b c.jsonl")],
    max_sample_num=5,
)
RECIPES = {
    "nested keys": (
        DATA,
        [
            Step(name="text_length_filter", params={"min_len": 5.0, "reversed_range": True}),
            Step(name="document_deduplicator"),
            Step(name="document_deduplicator", params={"lowercase": True}),
        ],
        SystemSpec.model_validate({"np": 1, "checkpoint": {"strategy": "every_op", "n_ops": 2}}),
    ),
    "a path with a blank": (
        DATA.model_copy(update={"dataset_path": "b c.jsonl", "suffixes": [".jsonl"]}),
        [Step(name="suffix_filter", params={"suffixes": [".txt", ".md"]})],
        SystemSpec.model_validate({"open_tracer": True, "trace_keys": ["id"]}),
    ),
    "several places": (
        DatasetSpec(dataset=PLACES, export_path="out.parquet", keep_stats_in_res_ds=True),
        [Step(name="text_chunk_mapper", params={"max_len": None, "overlap_len": 0})],
        SystemSpec(executor_type="ray_partitioned"),
    ),
}


def _said(environment: DataEnvironment, code: str, *arguments: str, cwd: Path) -> Any:
    done = subprocess.run(
        [environment.python(), "-c", code, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_catalogue_is_what_the_release_registers(
    data_juicer: DataEnvironment, tmp_path: Path
) -> None:
    told = _said(data_juicer, SIGNATURES, cwd=tmp_path)
    catalogue = bundled()

    assert told.keys() == catalogue.operators.keys()
    for name, said in told.items():
        operator = catalogue.operators[name]
        own = {each.name: each for each in operator.parameters}
        modes = [each for each in said["modes"] if each != "default" or name not in ONLY_ON_RAY]
        assert list(operator.modes) == modes, name
        assert sorted(own.keys() | catalogue.common(operator.type).keys()) == said["known"], name
        for parameter, (is_required, default) in said["own"].items():
            found = own[parameter]
            assert found.is_required == is_required, (name, parameter)
            if not is_required and not found.computed:
                shown = (
                    default.replace("(", "[").replace(")", "]") if default[0] == "(" else default
                )
                assert repr(found.default) == shown, (name, parameter)


def test_what_the_release_refuses_of_parameters_is_refused_before(
    data_juicer: DataEnvironment, tmp_path: Path
) -> None:
    tries = [
        [operator.name, parameter, value]
        for operator in bundled().operators.values()
        for parameter in (*(each.name for each in operator.parameters), "text_key", "no_such")
        for value in VALUES
    ]
    (tmp_path / "tries.json").write_text(json.dumps(tries), encoding="utf-8")

    refused = _said(data_juicer, PREFLIGHT, cwd=tmp_path)

    assert len(refused) > len(tries) / 3
    sandbox = Sandbox(tmp_path)
    taken = [
        (name, parameter, value)
        for name, parameter, value in refused
        if not _is_refused(name, parameter, value, sandbox)
    ]
    assert taken == []


def _is_refused(name: str, parameter: str, value: object, sandbox: Sandbox) -> bool:
    steps = [Step(name=name, params={parameter: value})]
    recipe = Recipe(dataset=DATA, process=ProcessSpec(operators=steps))
    own = check_process(recipe.process, "default", bundled(), sandbox).errors
    whole = check_recipe(recipe, bundled(), sandbox).errors
    return any(f"{name}.{parameter}" in each for each in own) or any(
        f"refuses `{name}`" in each for each in whole
    )


@pytest.mark.parametrize("kind", RECIPES)
def test_a_saved_plan_is_read_as_it_was_meant(
    data_juicer: DataEnvironment, tmp_path: Path, kind: str
) -> None:
    dataset, steps, system = RECIPES[kind]
    recipe = Recipe(dataset=dataset, process=ProcessSpec(operators=steps), system=system)
    plan = Plan(user_intent="ünïcode: #1", recipe=recipe)
    for file in ("in.jsonl", "b c.jsonl"):
        (tmp_path / file).write_text('{"content": "x"}\n', encoding="utf-8")
    (tmp_path / "plan.yaml").write_text(plan.to_yaml(), encoding="utf-8")

    read = _said(data_juicer, READ, "plan.yaml", cwd=tmp_path)

    for key, value in recipe.to_config().items():
        if key == "process":
            assert [[*each] for each in read["process"]] == [[*each] for each in value]
            for step, (given,) in zip(read["process"], map(dict.values, value), strict=True):
                (params,) = step.values()
                assert params.items() >= (given or {}).items()
        elif isinstance(value, dict):
            assert read[key].items() >= value.items()
        elif key.endswith("_path"):
            assert Path(read[key]).name == value
        else:
            assert read[key] == value
