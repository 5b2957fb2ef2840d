"""Checks a recipe against the release: operators, system keys, and the parts together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.core.errors import NotFoundError, ToolError
from tools.data.catalogue.catalogue import Catalogue, Operator, ParameterInfo
from tools.data.checks.dataset import check_dataset
from tools.data.checks.findings import Findings, faults
from tools.data.checks.media import media_warnings
from tools.data.checks.rows import is_directory
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec, Recipe, Step, SystemSpec
from tools.sandbox.files.sandbox import Sandbox

FUSION = ("greedy", "probe")
"""The values of `fusion_strategy`, which the release's parser leaves open."""

_BOUND = re.compile(r"(?:^|_)min(?=_|$)")

_REFUSED_TYPE = "ClosedUnitInterval"
"""For which the release's own preflight takes no number, not even its operators' defaults."""


def check_recipe(recipe: Recipe, catalogue: Catalogue, sandbox: Sandbox) -> Findings:
    """Checks each part of a recipe, and whether they go together."""
    executor = recipe.system.executor_type
    findings = check_dataset(recipe.dataset, executor, catalogue, sandbox)
    findings.add(check_process(recipe.process, executor, catalogue, sandbox))
    findings.add(check_system(recipe.system, catalogue))
    if (recipe.system.model_extra or {}).get("strict_preflight", True):
        findings.errors += _refused(recipe.process, catalogue)
    findings.warnings += media_warnings(recipe, catalogue)
    return findings


def resolve_names(spec: ProcessSpec, catalogue: Catalogue) -> tuple[ProcessSpec, list[str]]:
    """Returns the spec with the release's names of its operators, and a note for each change.

    A name that the release does not have stays: `check_process` judges it.
    """
    notes = []
    steps = []
    for step in spec.operators:
        try:
            found = catalogue.resolve(step.name)
        except NotFoundError:
            steps.append(step)
            continue
        if found.how != "exact":
            notes.append(f"{step.name!r} was taken for `{found.operator.name}`.")
        steps.append(step.model_copy(update={"name": found.operator.name}))
    return spec.model_copy(update={"operators": steps}), notes


def check_process(
    spec: ProcessSpec, executor: Executor, catalogue: Catalogue, sandbox: Sandbox
) -> Findings:
    """Checks that each operator is in the release, or may be the user's own, and its parameters."""
    findings = Findings()
    for path in spec.custom_operator_paths or ():
        try:
            if not is_directory(sandbox, path):
                sandbox.open_read(path).close()
        except ToolError as error:
            findings.errors.append(error.message)
    for place, step in enumerate(spec.operators):
        operator = catalogue.operators.get(step.name)
        if operator is not None:
            findings.add(_check_step(step, operator, executor, catalogue))
        elif spec.custom_operator_paths:
            findings.warnings.append(
                f"`{step.name}` is not in the release; it is taken for one of your own and is "
                "checked when it runs."
            )
        else:
            findings.errors.append(_unknown(place, step.name, catalogue))
    return findings


def _check_step(
    step: Step, operator: Operator, executor: Executor, catalogue: Catalogue
) -> Findings:
    own = {each.name: each for each in operator.parameters}
    known = {**catalogue.common(operator.type), **own}
    findings = Findings(list(faults(step.name, step.params, known)))
    findings.warnings += _empty_ranges(step, own)
    if executor not in operator.modes:
        findings.errors.append(
            f"`{step.name}` does not run with executor_type {executor!r}; it does with "
            f"{' or '.join(map(repr, operator.modes))}."
        )
    return findings


def _empty_ranges(step: Step, own: Mapping[str, ParameterInfo]) -> Iterator[str]:
    def number(name: str) -> float | None:
        value = step.params.get(name, own[name].default if name in own else None)
        return value if isinstance(value, int | float) else None

    for name in own:
        other = _BOUND.sub(lambda found: found[0].replace("min", "max"), name)
        least, most = number(name), number(other)
        if name != other and least is not None and most is not None and least > most:
            yield f"`{step.name}`: {name} {least:g} is above {other} {most:g}, so nothing is kept."


def _unknown(place: int, name: str, catalogue: Catalogue) -> str:
    try:
        near: tuple[str, ...] = (catalogue.resolve(name).operator.name,)
    except NotFoundError as error:
        near = tuple(error.suggestions)
    next_step = f"did you mean {' or '.join(near)}?" if near else "find one: retrieve_operators."
    return f"`operators[{place}].name` {name[:100]!r} is unknown; {next_step}"


def _refused(spec: ProcessSpec, catalogue: Catalogue) -> Iterator[str]:
    for step in spec.operators:
        operator = catalogue.operators.get(step.name)
        if operator and any(each.type == _REFUSED_TYPE for each in operator.parameters):
            yield (
                f"Data-Juicer {catalogue.version} refuses `{step.name}` with any value before it "
                "runs: set strict_preflight to false in the system spec."
            )


def nest_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turns keys with a dot into keys within another, which is how a recipe has them."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        if inner:
            made[outer] = {**made.get(outer, {}), inner: value}
        else:
            made[name] = value
    return made


def check_system(spec: SystemSpec, catalogue: Catalogue) -> Findings:
    """Checks that the release has its keys, and that they fit, each and together."""
    elsewhere = {
        **dict.fromkeys(DatasetSpec.model_fields, "dataset"),
        **dict.fromkeys((*ProcessSpec.model_fields, "process"), "process"),
    }
    findings, own = Findings(), {}
    for name, value in _flat(spec.model_dump(exclude_none=True), catalogue):
        if name in elsewhere:
            findings.errors.append(f"`{name}` belongs to the {elsewhere[name]} spec.")
        else:
            own[name] = value
    findings.errors += faults("", own, catalogue.system_options)
    findings.errors += _contradictions(own)
    return findings


def _flat(values: Mapping[str, Any], catalogue: Catalogue) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        is_outer = any(each.startswith(f"{name}.") for each in catalogue.options)
        if is_outer and isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def _contradictions(values: Mapping[str, Any]) -> Iterator[str]:
    """Keys that fit by themselves, and that the release refuses together."""
    executor = values.get("executor_type", "default")
    count = values.get("partition.num_of_partitions")
    size = values.get("partition.size")
    if values.get("partition.mode") == "manual" and size and count not in {None, "auto"}:
        yield "In manual mode give partition.size or partition.num_of_partitions, not both."
    if values.get("fusion_strategy", FUSION[0]) not in FUSION:
        yield f"`fusion_strategy` is {values['fusion_strategy']!r}; send {' or '.join(FUSION)}."
    if values.get("elastic_juicer_adaptive_batching"):
        if executor == "default":
            yield "`elastic_juicer_adaptive_batching` needs an executor_type that is on Ray."
        if values.get("op_fusion"):
            yield "`elastic_juicer_adaptive_batching` and `op_fusion` exclude each other."
    if values.get("elastic_juicer_profile_seed") and (
        executor != "ray_partitioned" or not values.get("elastic_juicer_adaptive_batching")
    ):
        yield (
            "`elastic_juicer_profile_seed` needs elastic_juicer_adaptive_batching and "
            "executor_type 'ray_partitioned'."
        )
