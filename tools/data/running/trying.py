"""Tries the operators of a recipe before it runs: some refuse a value only when made or used."""

from __future__ import annotations

from tools.core.context import RequestContext
from tools.core.errors import UnavailableError
from tools.data.catalogue.bundle import bundled
from tools.data.catalogue.operator import file_parameters
from tools.data.checks.findings import Findings
from tools.data.recipe import Executor, ProcessSpec, Step
from tools.data.running.workers import workers_of


async def check_operators(
    context: RequestContext, process: ProcessSpec, executor: Executor
) -> Findings:
    """Finds what is wrong with operators as Data-Juicer makes and uses them, without the data.

    A package that is not installed is a warning: elsewhere the recipe runs. Nothing is tried
    where Data-Juicer is not set up, where no worker starts, or on a cluster; nor are operators
    that run in no set-up, that are the user's own, or that are given files to read.
    """
    known = bundled().operators
    steps = [
        each
        for each in process.operators
        if each.name in known
        and known[each.name].runs != "no"
        and not file_parameters(each.name, each.params)
    ]
    if executor != "default" or not steps:
        return Findings()
    asked = {
        "do": "make",
        "source": "",
        "config": {"process": [{each.name: each.params} for each in steps]},
        "probe": [each.name for each in steps if _is_probed(each)],
    }
    try:
        answer = await (await workers_of(context.machine)).ask(asked, context)
    except UnavailableError:
        return Findings()
    findings = Findings()
    for fault in answer["faults"]:
        where = ".".join(filter(None, (fault["operator"], fault["parameter"])))
        found = findings.warnings if fault["lacks"] else findings.errors
        found.append(f"`{where}`: {fault['why']}")
    return findings


def _is_probed(step: Step) -> bool:
    """Whether an operator is one on texts alone, which is tried on samples."""
    tags = bundled().operators[step.name].tags
    # Parameters with such names name a field, which the samples do not have.
    needs_no_field = not any("key" in name or "field" in name for name in step.params)
    return needs_no_field and "text" in tags and "multimodal" not in tags and "gpu" not in tags
