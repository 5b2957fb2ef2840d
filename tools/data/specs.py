"""The three parts of a recipe and the whole plan: built, checked, and saved for Data-Juicer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.data.catalogue.catalogue import bundled
from tools.data.recipe import (
    DatasetMixture,
    DatasetSpec,
    Executor,
    FileOrDirectory,
    Key,
    Plan,
    ProcessSpec,
    Recipe,
    Step,
    SystemSpec,
    explain_faults,
)
from tools.sandbox.files.replace import EXPECT_ABSENT
from tools.sandbox.files.text_files import FilePath

if TYPE_CHECKING:  # a start checks nothing
    from tools.data.checks.findings import Findings

SHOWN_ERRORS = 20

_Executor = Annotated[Executor, Field(description="What is to run the recipe")]

_Plan = Annotated[
    Plan, Field(description="As assemble_plan answers it"), Alias("plan_payload", "plan_data")
]
READS: Mapping[str, Any] = {
    "scope": ToolScope.SANDBOXED,
    "effects": {Effect.READ},
    "idempotent": True,
    "tags": ("data", "recipes"),
}
_TRIES: Mapping[str, Any] = {**READS, "scope": ToolScope.SYSTEM, "timeout": 120}
"""For tools that also have Data-Juicer make the operators."""


class Checked(ToolModel):
    """Whether something is valid.

    Attributes:
        valid: Whether Data-Juicer would take it, as far as can be told before it runs.
        errors: Why it would not.
        warnings: What the user should know about it nevertheless.
    """

    valid: bool
    errors: list[str]
    warnings: list[str]

    @classmethod
    def of(cls, findings: Findings) -> Checked:
        """Makes the answer of a check."""
        errors = findings.errors
        return cls(valid=not errors, errors=errors, warnings=findings.warnings)

    def accepted(self, what: str) -> list[str]:
        """Returns the warnings about a valid "dataset spec", or another part; raises its errors."""
        if self.errors:
            raise InvalidArgumentsError(
                f"The {what} is not valid. {' '.join(self.errors[:SHOWN_ERRORS])}",
                next_actions=["Correct what is named and send it again."],
            )
        return self.warnings

    def to_text(self) -> str:
        """Returns the verdict, then a line for each error and warning."""
        errors = [f"Error: {each}" for each in self.errors]
        return _with_notes(["Valid." if self.valid else "Not valid.", *errors], self.warnings)


class _Built(ToolModel):
    warnings: Annotated[list[str], Field(description="What the user should know about it.")]

    def to_text(self) -> str:
        """Returns what was built as JSON, then the warnings."""
        [built] = (value for name, value in self if name != "warnings")
        return _with_notes([built.model_dump_json(exclude_none=True)], self.warnings)


class BuiltDatasetSpec(_Built):
    """The dataset part of a recipe."""

    dataset_spec: Annotated[DatasetSpec, Field(description="The part.")]


class BuiltProcessSpec(_Built):
    """The operators of a recipe."""

    process_spec: Annotated[
        ProcessSpec, Field(description="The operators, by their names in the release.")
    ]


class BuiltSystemSpec(_Built):
    """How a recipe is run."""

    system_spec: Annotated[SystemSpec, Field(description="The keys.")]


class AssembledPlan(_Built):
    """A plan of valid parts."""

    plan: Annotated[Plan, Field(description="The plan.")]


class SavedPlan(ToolModel):
    """A plan that was saved.

    Attributes:
        plan_path: The file, relative to the root.
        sha256: Digest of its content.
        operators: The operators in their order.
        warnings: What the user should know about the plan.
    """

    plan_path: str
    sha256: str
    operators: list[str]
    warnings: list[str]

    def to_text(self) -> str:
        """Returns where it is, then the warnings."""
        done = f"Saved {self.plan_path}: {' > '.join(self.operators)}. `apply_recipe` runs it."
        return _with_notes([done], self.warnings)


def _with_notes(lines: list[str], warnings: list[str]) -> str:
    return "\n".join([*lines, *(f"Note: {each}" for each in warnings)])


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
    with explain_faults("options do not fit", f"Known are {', '.join(DatasetSpec.model_fields)}."):
        spec = DatasetSpec.model_validate({**(options or {}), **given})
    spec, notes = find_text_keys(spec, context.sandbox)
    checked = validate_dataset_spec(context, spec, executor_type)
    return BuiltDatasetSpec(dataset_spec=spec, warnings=notes + checked.accepted("dataset spec"))


@tool(**_TRIES, capabilities=("check the operators of a recipe and the types of their parameters",))
async def validate_process_spec(
    context: RequestContext,
    process_spec: Annotated[ProcessSpec, Field(description="As build_process_spec answers it")],
    executor_type: _Executor = "default",
) -> Checked:
    """Checks operators: exact names, known parameters of the right types, the executor."""
    from tools.data.checks.recipe import check_process

    check = partial(check_process, process_spec, executor_type, bundled(), context.sandbox)
    return await _check_and_try(context, check, process_spec, executor_type)


@tool(**_TRIES, capabilities=("put operators in order with their parameters",))
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
    with explain_faults("options do not fit", "See list_system_config."):
        spec = SystemSpec.model_validate({**nest_keys(options or {}), **named})
    warnings = validate_system_spec(spec).accepted("system spec")
    return BuiltSystemSpec(system_spec=spec, warnings=warnings)


@tool(**_TRIES, capabilities=("check a plan for cleaning a data set before it runs",))
async def plan_validate(context: RequestContext, plan: _Plan) -> Checked:
    """Checks a plan whole: data, operators, types of parameters, system, and all together."""
    from tools.data.checks.recipe import check_recipe

    recipe = plan.recipe
    check = partial(check_recipe, recipe, bundled(), context.sandbox)
    return await _check_and_try(context, check, recipe.process, recipe.system.executor_type)


@tool(**_TRIES, capabilities=("make a plan for cleaning a data set out of its three specs",))
async def assemble_plan(
    context: RequestContext,
    user_intent: Annotated[
        str, Field(max_length=2_000, pattern=r"\S", description="What it is for")
    ],
    dataset_spec: Annotated[DatasetSpec, Field(description="As build_dataset_spec answers it")],
    process_spec: Annotated[ProcessSpec, Field(description="As build_process_spec answers it")],
    system_spec: Annotated[
        SystemSpec | None, Field(description="As build_system_spec answers it")
    ] = None,
    approval_required: Annotated[
        bool, Field(description="Whether a person is asked before it runs")
    ] = True,
) -> AssembledPlan:
    """Puts a plan together of its parts, if they are valid each and together."""
    recipe = Recipe(dataset=dataset_spec, process=process_spec, system=system_spec or SystemSpec())
    plan = Plan(user_intent=user_intent, recipe=recipe, approval_required=approval_required)
    checked = await plan_validate(context, plan)
    return AssembledPlan(plan=plan, warnings=checked.accepted("plan"))


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE},
    destructive=True,
    tags=("data", "recipes"),
    capabilities=("save a recipe as YAML for Data-Juicer",),
    subject=Subject(SubjectKind.PATH, "output_path"),
)
async def plan_save(
    context: RequestContext,
    plan: _Plan,
    output_path: Annotated[FilePath, Field(description="A .yaml or .yml file inside the root")],
    overwrite: Annotated[bool, Field(description="Replace the file if it exists")] = False,
) -> SavedPlan:
    """Saves a valid plan as the YAML that `dj-process --config` takes."""
    if not output_path.lower().endswith((".yaml", ".yml")):
        raise InvalidArgumentsError(
            f"output_path: {output_path!r} is not a YAML file.",
            next_actions=["Let it end in .yaml."],
        )
    warnings = (await plan_validate(context, plan)).accepted("plan")
    expected = None if overwrite else EXPECT_ABSENT
    text = plan.to_yaml().encode()
    write = partial(context.sandbox.write, output_path, text, expected_sha256=expected)
    written = await anyio.to_thread.run_sync(write)
    return SavedPlan(
        plan_path=written.path,
        sha256=written.sha256,
        operators=[each.name for each in plan.recipe.process.operators],
        warnings=warnings,
    )


async def _check_and_try(
    context: RequestContext, check: Callable[[], Findings], process: ProcessSpec, executor: Executor
) -> Checked:
    """Runs a check, and where it finds no error has Data-Juicer make the operators."""
    from tools.data.running.readiness import check_operators

    findings = await anyio.to_thread.run_sync(check)
    if not findings.errors:
        findings.add(await check_operators(context, process, executor))
    return Checked.of(findings)
