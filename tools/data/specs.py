"""The three parts of a recipe: built, and checked against the release."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import Effect, ToolScope, tool
from tools.data.answers.specs import (
    BuiltDatasetSpec,
    BuiltProcessSpec,
    BuiltSystemSpec,
    Checked,
)
from tools.data.catalogue.bundle import bundled
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


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("say which data a recipe reads and where the result goes",),
)
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
    from tools.data.checks.dataset import check_dataset, with_text_keys

    given = {
        "export_path": export_path,
        "dataset_path": dataset_path,
        "dataset": dataset,
        "generated_dataset_config": generated_dataset_config,
        "text_keys": text_keys,
        "image_key": image_key,
        "audio_key": audio_key,
        "video_key": video_key,
    }
    named = {key: value for key, value in given.items() if value is not None}
    spec, found = with_text_keys(_dataset_spec({**(options or {}), **named}), context.sandbox)
    findings = check_dataset(spec, executor_type, bundled(), context.sandbox)
    findings.refuse("The dataset spec")
    return BuiltDatasetSpec(dataset_spec=spec, warnings=found.warnings + findings.warnings)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("put operators in order with their parameters",),
)
def build_process_spec(
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
    from tools.data.checks.process import check_executor, check_process, resolved

    given = ProcessSpec(operators=operators, custom_operator_paths=custom_operator_paths)
    spec, found = resolved(given, bundled())
    findings = check_process(spec, bundled(), context.sandbox)
    findings.add(check_executor(spec, executor_type, bundled()))
    findings.refuse("The process spec")
    return BuiltProcessSpec(process_spec=spec, warnings=found.warnings + findings.warnings)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("say how a recipe is run: processes, Ray, caches, traces",),
)
def build_system_spec(
    executor_type: _Executor = "default",
    np: Annotated[int | None, Field(ge=1, description="Processes at once; default: 4")] = None,
    options: Annotated[
        dict[str, Any] | None, Field(description="More keys, as list_system_config has them")
    ] = None,
) -> BuiltSystemSpec:
    """Builds the part of a recipe that says how it is run."""
    from tools.data.checks.system import check_system, nested

    named = {"executor_type": executor_type, **({} if np is None else {"np": np})}
    spec = SystemSpec.model_validate({**nested(options or {}), **named})
    findings = check_system(spec, bundled())
    findings.refuse("The system spec")
    return BuiltSystemSpec(system_spec=spec, warnings=findings.warnings)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("check that the data of a recipe can be read and the result written",),
)
def validate_dataset_spec(
    context: RequestContext,
    dataset_spec: Annotated[DatasetSpec, Field(description="As build_dataset_spec answers it")],
    executor_type: _Executor = "default",
) -> Checked:
    """Checks a dataset spec: that the data are there, with its fields; nothing is changed."""
    from tools.data.checks.dataset import check_dataset

    return Checked.of(check_dataset(dataset_spec, executor_type, bundled(), context.sandbox))


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("check the operators of a recipe and the types of their parameters",),
)
def validate_process_spec(
    context: RequestContext,
    process_spec: Annotated[ProcessSpec, Field(description="As build_process_spec answers it")],
    executor_type: _Executor = "default",
) -> Checked:
    """Checks operators: exact names, known parameters of the right types, the executor."""
    from tools.data.checks.process import check_executor, check_process

    findings = check_process(process_spec, bundled(), context.sandbox)
    findings.add(check_executor(process_spec, executor_type, bundled()))
    return Checked.of(findings)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("check how a recipe is to be run",),
)
def validate_system_spec(
    system_spec: Annotated[SystemSpec, Field(description="As build_system_spec answers it")],
) -> Checked:
    """Checks a system spec: known keys, right types, nothing that excludes another."""
    from tools.data.checks.system import check_system

    return Checked.of(check_system(system_spec, bundled()))


def _dataset_spec(values: dict[str, Any]) -> DatasetSpec:
    try:
        return DatasetSpec.model_validate(values)
    except ValidationError as error:
        others = ", ".join(DatasetSpec.model_fields)
        raise InvalidArgumentsError(
            f"options do not fit ({faults_of(error)}).", next_actions=[f"Known are {others}."]
        ) from None
