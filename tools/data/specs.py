"""The three parts of a recipe: built, and checked against the release.

Each `validate_` tool is the check of its `build_` tool, for a spec that exists already.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field, ValidationError

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import Effect, ToolScope, tool
from tools.data.answers.specs import BuiltDatasetSpec, BuiltProcessSpec, BuiltSystemSpec, Checked
from tools.data.catalogue.catalogue import bundled
from tools.data.recipe import (
    DatasetMixture,
    DatasetSpec,
    Executor,
    FileOrDirectory,
    Key,
    ProcessSpec,
    Step,
    SystemSpec,
    faults_of,
)

_Executor = Annotated[Executor, Field(description="What is to run the recipe")]

READS: Mapping[str, Any] = {
    "scope": ToolScope.SANDBOXED,
    "effects": {Effect.READ},
    "idempotent": True,
    "tags": ("data", "recipes"),
}
"""What all tools are that make or check something of a recipe, and change nothing."""

TRIES: Mapping[str, Any] = {**READS, "scope": ToolScope.SYSTEM, "timeout": 120}
"""What those are that also have Data-Juicer make the operators."""


@tool(**READS, capabilities=("check that the data of a recipe can be read and the result written",))
def validate_dataset_spec(
    context: RequestContext,
    dataset_spec: Annotated[DatasetSpec, Field(description="As build_dataset_spec answers it")],
    executor_type: _Executor = "default",
) -> Checked:
    """Checks a dataset spec: that the data are there, with its fields; nothing is changed."""
    from tools.data.checks.dataset import check_dataset

    return Checked.of(check_dataset(dataset_spec, executor_type, bundled(), context.sandbox))


@tool(**READS, capabilities=("say which data a recipe reads and where the result goes",))
def build_dataset_spec(
    context: RequestContext,
    export_path: Annotated[FileOrDirectory, Field(min_length=1, description="File to write")],
    dataset_path: Annotated[
        FileOrDirectory | None, Field(description="File or directory to read; or else dataset")
    ] = None,
    dataset: Annotated[
        DatasetMixture | None,
        Field(description="Several places, or a remote one: see list_dataset_load_strategies"),
    ] = None,
    generated_dataset_config: Annotated[
        dict[str, Any] | None, Field(description="A formatter (type) that makes data")
    ] = None,
    text_keys: Annotated[
        list[Key] | None, Field(description="Where samples have text; default: text, or found")
    ] = None,
    image_key: Annotated[Key | None, Field(description="Where they have images")] = None,
    audio_key: Annotated[Key | None, Field(description="Where they have audio files")] = None,
    video_key: Annotated[Key | None, Field(description="Where they have videos")] = None,
    executor_type: _Executor = "default",
    options: Annotated[
        dict[str, Any] | None,
        Field(description="More: export_type, suffixes, validators, keep_stats_in_res_ds, …"),
    ] = None,
) -> BuiltDatasetSpec:
    """Builds the dataset part of a recipe; finds the key of the texts where none is named."""
    from tools.data.checks.dataset import find_text_keys

    named = {
        "export_path": export_path,
        "dataset_path": dataset_path,
        "dataset": dataset,
        "generated_dataset_config": generated_dataset_config,
        "text_keys": text_keys,
        "image_key": image_key,
        "audio_key": audio_key,
        "video_key": video_key,
    }
    given = {key: value for key, value in named.items() if value is not None}
    try:
        spec = DatasetSpec.model_validate({**(options or {}), **given})
    except ValidationError as error:
        raise InvalidArgumentsError(
            f"options do not fit ({faults_of(error)}).",
            next_actions=[f"Known are {', '.join(DatasetSpec.model_fields)}."],
        ) from None
    spec, notes = find_text_keys(spec, context.sandbox)
    checked = validate_dataset_spec(context, spec, executor_type)
    return BuiltDatasetSpec(dataset_spec=spec, warnings=notes + checked.accepted("dataset spec"))


@tool(**TRIES, capabilities=("check the operators of a recipe and the types of their parameters",))
async def validate_process_spec(
    context: RequestContext,
    process_spec: Annotated[ProcessSpec, Field(description="As build_process_spec answers it")],
    executor_type: _Executor = "default",
) -> Checked:
    """Checks operators: exact names, known parameters of the right types, the executor."""
    from tools.data.checks.recipe import check_process
    from tools.data.running.readiness import check_operators

    check = partial(check_process, process_spec, executor_type, bundled(), context.sandbox)
    findings = await anyio.to_thread.run_sync(check)
    if not findings.errors:
        findings.add(await check_operators(context, process_spec, executor_type))
    return Checked.of(findings)


@tool(**TRIES, capabilities=("put operators in order with their parameters",))
async def build_process_spec(
    context: RequestContext,
    operators: Annotated[
        list[Step], Field(min_length=1, max_length=200, description="In order {name, params}")
    ],
    custom_operator_paths: Annotated[
        list[FileOrDirectory] | None,
        Field(description="Files or directories with operators of your own"),
    ] = None,
    executor_type: _Executor = "default",
) -> BuiltProcessSpec:
    """Builds the list of operators of a recipe: names understood, parameters checked by type."""
    from tools.data.checks.recipe import resolve_names

    given = ProcessSpec(operators=operators, custom_operator_paths=custom_operator_paths)
    spec, notes = resolve_names(given, bundled())
    checked = await validate_process_spec(context, spec, executor_type)
    return BuiltProcessSpec(process_spec=spec, warnings=notes + checked.accepted("process spec"))


@tool(**READS, capabilities=("check how a recipe is to be run",))
def validate_system_spec(
    system_spec: Annotated[SystemSpec, Field(description="As build_system_spec answers it")],
) -> Checked:
    """Checks a system spec: known keys, right types, nothing that excludes another."""
    from tools.data.checks.recipe import check_system

    return Checked.of(check_system(system_spec, bundled()))


@tool(**READS, capabilities=("say how a recipe is run: processes, Ray, caches, traces",))
def build_system_spec(
    executor_type: _Executor = "default",
    np: Annotated[int | None, Field(ge=1, description="Processes at once; default: 4")] = None,
    options: Annotated[
        dict[str, Any] | None, Field(description="More keys, as list_system_config has them")
    ] = None,
) -> BuiltSystemSpec:
    """Builds the part of a recipe that says how it is run."""
    from tools.data.checks.recipe import nest_keys

    named = {"executor_type": executor_type, **({} if np is None else {"np": np})}
    spec = SystemSpec.model_validate({**nest_keys(options or {}), **named})
    warnings = validate_system_spec(spec).accepted("system spec")
    return BuiltSystemSpec(system_spec=spec, warnings=warnings)
