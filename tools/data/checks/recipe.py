"""Checks a recipe against the release: operators, system keys, and the parts together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tools.core.errors import NotFoundError, ToolError
from tools.data.catalogue.catalogue import Catalogue, Operator
from tools.data.checks.dataset import check_dataset
from tools.data.checks.findings import Findings, faults
from tools.data.checks.media import media_warnings
from tools.data.checks.rows import is_directory
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec, Recipe, Step, SystemSpec
from tools.sandbox.files.sandbox import Sandbox

_FUSION = ("greedy", "probe")  # which the release's parser leaves open
_BOUND = re.compile(r"(?:^|_)min(?=_|$)")
_REFUSED_TYPE = "ClosedUnitInterval"  # for which the release's preflight takes no number at all


def check_recipe(recipe: Recipe, catalogue: Catalogue, sandbox: Sandbox) -> Findings:
    """Checks each part of a recipe, and whether they go together."""
    executor = recipe.system.executor_type
    findings = check_dataset(recipe.dataset, executor, catalogue, sandbox)
    findings.add(check_process(recipe.process, executor, catalogue, sandbox))
    findings.add(check_system(recipe.system, catalogue))
    if (recipe.system.model_extra or {}).get("strict_preflight", True):
        known = catalogue.operators
        findings.errors += [
            f"Data-Juicer {catalogue.version} refuses `{step.name}` with any value before it runs:"
            " set strict_preflight to false in the system spec."
            for step in recipe.process.operators
            if step.name in known
            and any(each.type == _REFUSED_TYPE for each in known[step.name].parameters)
        ]
    findings.warnings += media_warnings(recipe, catalogue)
    return findings


def resolve_names(spec: ProcessSpec, catalogue: Catalogue) -> tuple[ProcessSpec, list[str]]:
    """Returns the spec with the release's names of its operators, and a note for each change."""
    notes, steps = [], []
    for step in spec.operators:
        name = step.name
        with suppress(NotFoundError):  # `check_process` judges such a name
            found = catalogue.resolve(name)
            name = found.operator.name
            if found.how != "exact":
                notes.append(f"{step.name!r} was taken for `{name}`.")
        steps.append(step.model_copy(update={"name": name}))
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
        if operator := catalogue.operators.get(step.name):
            findings.add(_check_step(step, operator, executor, catalogue))
        elif spec.custom_operator_paths:
            findings.warnings.append(
                f"`{step.name}` is not in the release; it is taken for one of your own and is "
                "checked when it runs."
            )
        else:
            findings.errors.append(_name_nearest(place, step.name, catalogue))
    return findings


def _check_step(
    step: Step, operator: Operator, executor: Executor, catalogue: Catalogue
) -> Findings:
    own = {each.name: each for each in operator.parameters}
    known = {**catalogue.common(operator.type), **own}
    findings = Findings(list(faults(step.name, step.params, known)))
    if executor not in operator.modes:
        findings.errors.append(
            f"`{step.name}` does not run with executor_type {executor!r}; it does with "
            f"{' or '.join(map(repr, operator.modes))}."
        )
    values = {name: each.default for name, each in own.items()} | step.params
    for name in own:
        other = _BOUND.sub(lambda found: found[0].replace("min", "max"), name)
        least, most = values.get(name), values.get(other)
        if not (isinstance(least, int | float) and isinstance(most, int | float)):
            continue
        if name != other and least > most:
            findings.warnings.append(
                f"`{step.name}`: {name} {least:g} is above {other} {most:g}, so nothing is kept."
            )
    return findings


def _name_nearest(place: int, name: str, catalogue: Catalogue) -> str:
    try:
        near = [catalogue.resolve(name).operator.name]
    except NotFoundError as error:
        near = list(error.suggestions)
    next_step = f"did you mean {' or '.join(near)}?" if near else "find one: retrieve_operators."
    return f"`operators[{place}].name` {name[:100]!r} is unknown; {next_step}"


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
    known = catalogue.system_options
    values = dict(_flatten(spec.model_dump(exclude_none=True), catalogue))
    findings = Findings(
        [f"`{name}` belongs to the {elsewhere[name]} spec." for name in values if name in elsewhere]
    )
    own = {name: value for name, value in values.items() if name not in elsewhere}
    findings.errors += [*faults("", own, known), *_find_contradictions(own)]
    findings.warnings += [
        f"`{name}`: {known[name].why_not}"
        for name, value in own.items()
        if value and name in known and known[name].why_not
    ]
    return findings


def _flatten(values: Mapping[str, Any], catalogue: Catalogue) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        is_outer = any(each.startswith(f"{name}.") for each in catalogue.options)
        if is_outer and isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield name, value


def _find_contradictions(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields an error for keys that fit by themselves, and that the release refuses together."""
    get = values.get
    is_batching, executor = get("elastic_juicer_adaptive_batching"), get("executor_type", "default")
    is_sized = get("partition.mode") == "manual" and get("partition.size")
    if is_sized and get("partition.num_of_partitions") not in {None, "auto"}:
        yield "In manual mode give partition.size or partition.num_of_partitions, not both."
    if get("fusion_strategy", _FUSION[0]) not in _FUSION:
        yield f"`fusion_strategy` is {values['fusion_strategy']!r}; send {' or '.join(_FUSION)}."
    if is_batching and executor == "default":
        yield "`elastic_juicer_adaptive_batching` needs an executor_type that is on Ray."
    if is_batching and get("op_fusion"):
        yield "`elastic_juicer_adaptive_batching` and `op_fusion` exclude each other."
    if get("elastic_juicer_profile_seed") and not (is_batching and executor == "ray_partitioned"):
        yield (
            "`elastic_juicer_profile_seed` needs elastic_juicer_adaptive_batching and "
            "executor_type 'ray_partitioned'."
        )
