"""Plans: recipes assembled, checked as a whole, and saved for Data-Juicer."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.data.answers.specs import AssembledPlan, Checked, SavedPlan
from tools.data.catalogue.catalogue import bundled
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, SystemSpec
from tools.data.specs import TRIES
from tools.sandbox.files.editing import ABSENT
from tools.sandbox.files.text_files import FilePath

_Plan = Annotated[
    Plan, Field(description="As assemble_plan answers it"), Alias("plan_payload", "plan_data")
]


@tool(**TRIES, capabilities=("check a plan for cleaning a data set before it runs",))
async def plan_validate(context: RequestContext, plan: _Plan) -> Checked:
    """Checks a plan whole: data, operators, types of parameters, system, and all together."""
    from tools.data.checks.recipe import check_recipe
    from tools.data.running.readiness import check_operators

    recipe = plan.recipe
    check = partial(check_recipe, recipe, bundled(), context.sandbox)
    findings = await anyio.to_thread.run_sync(check)
    if not findings.errors:
        executor = recipe.system.executor_type
        findings.add(await check_operators(context, recipe.process, executor))
    return Checked.of(findings)


@tool(**TRIES, capabilities=("make a plan for cleaning a data set out of its three specs",))
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
    expected = None if overwrite else ABSENT
    text = plan.to_yaml().encode()
    write = partial(context.sandbox.write, output_path, text, expected_sha256=expected)
    written = await anyio.to_thread.run_sync(write)
    return SavedPlan(
        plan_path=written.path,
        sha256=written.sha256,
        operators=[each.name for each in plan.recipe.process.operators],
        warnings=warnings,
    )
