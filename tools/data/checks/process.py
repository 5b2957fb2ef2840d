"""Whether the operators of a recipe are there, and take what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.core.errors import NotFoundError, ToolError
from tools.data.catalogue.catalogue import Catalogue
from tools.data.catalogue.operator import Operator, Parameter
from tools.data.checks.findings import Findings
from tools.data.checks.rows import is_directory
from tools.data.checks.values import faults
from tools.data.recipe import Executor, ProcessSpec, Step
from tools.sandbox.files.sandbox import Sandbox

_BOUND = re.compile(r"(?:^|_)min(?=_|$)")


def resolved(spec: ProcessSpec, catalogue: Catalogue) -> tuple[ProcessSpec, Findings]:
    """The spec with the names that the release has for its operators.

    A name that is not the release's own is left as it is: `check_process` judges it.
    """
    findings = Findings()
    steps = []
    for step in spec.operators:
        try:
            found = catalogue.resolve(step.name)
        except NotFoundError:
            steps.append(step)
            continue
        if found.how != "exact":
            findings.warnings.append(f"{step.name!r} was taken for `{found.operator.name}`.")
        steps.append(step.model_copy(update={"name": found.operator.name}))
    return spec.model_copy(update={"operators": steps}), findings


def check_process(spec: ProcessSpec, catalogue: Catalogue, sandbox: Sandbox) -> Findings:
    """Whether each operator is in the release, or may be one of the user's own."""
    findings = Findings()
    for path in spec.custom_operator_paths or ():
        findings.errors += _unreachable(path, sandbox)
    for place, step in enumerate(spec.operators):
        operator = catalogue.operators.get(step.name)
        if operator is not None:
            findings.add(_check(step, operator, catalogue))
        elif spec.custom_operator_paths:
            findings.warnings.append(
                f"`{step.name}` is not in the release; it is taken for one of your own and is "
                "checked when it runs."
            )
        else:
            findings.errors.append(_unknown(place, step.name, catalogue))
    return findings


def check_executor(spec: ProcessSpec, executor: Executor, catalogue: Catalogue) -> Findings:
    """Whether an executor runs every operator."""
    findings = Findings()
    for step in spec.operators:
        operator = catalogue.operators.get(step.name)
        if operator is not None and executor not in operator.modes:
            findings.errors.append(
                f"`{step.name}` does not run with executor_type {executor!r}; it does with "
                f"{' or '.join(map(repr, operator.modes))}."
            )
    return findings


def _check(step: Step, operator: Operator, catalogue: Catalogue) -> Findings:
    own = {each.name: each for each in operator.parameters}
    known = {**catalogue.common(operator.type), **own}
    findings = Findings(list(faults(step.name, step.params, known)))
    findings.warnings += _empty_ranges(step, own)
    return findings


def _empty_ranges(step: Step, own: Mapping[str, Parameter]) -> Iterator[str]:
    """Bounds between which nothing is."""
    for name in own:
        other = _BOUND.sub(lambda found: found[0].replace("min", "max"), name)
        least, most = _number(name, step.params, own), _number(other, step.params, own)
        if name != other and least is not None and most is not None and least > most:
            yield f"`{step.name}`: {name} {least:g} is above {other} {most:g}, so nothing is kept."


def _number(name: str, given: Mapping[str, Any], own: Mapping[str, Parameter]) -> float | None:
    value = given.get(name, own[name].default if name in own else None)
    return value if isinstance(value, int | float) else None


def _unreachable(path: str, sandbox: Sandbox) -> Iterator[str]:
    try:
        if not is_directory(sandbox, path):
            sandbox.open_read(path).close()
    except ToolError as error:
        yield error.message


def _unknown(place: int, name: str, catalogue: Catalogue) -> str:
    try:
        meant = catalogue.resolve(name).operator.name
    except NotFoundError as error:
        near = f" did you mean {' or '.join(error.suggestions)}?" if error.suggestions else ""
        return f"`operators[{place}].name` {name[:100]!r} is unknown;{near}".removesuffix(";") + (
            "" if near else "; find one with retrieve_operators."
        )
    return f"`operators[{place}].name` {name[:100]!r} is unknown; did you mean {meant}?"
