"""Whether the parts of a recipe are valid, each and together."""

from __future__ import annotations

from collections.abc import Iterator

from tools.data.catalogue.catalogue import Catalogue
from tools.data.checks.dataset import check_dataset
from tools.data.checks.findings import Findings
from tools.data.checks.media import media_warnings
from tools.data.checks.process import check_executor, check_process
from tools.data.checks.system import check_system
from tools.data.recipe import Recipe
from tools.sandbox.files.sandbox import Sandbox

_REFUSED_TYPE = "ClosedUnitInterval"
"""For which the release's own preflight takes no number, not even its operators' defaults."""


def check_recipe(recipe: Recipe, catalogue: Catalogue, sandbox: Sandbox) -> Findings:
    """What is wrong with a recipe: with its parts, and with how they go together."""
    executor = recipe.system.executor_type
    findings = check_dataset(recipe.dataset, executor, catalogue, sandbox)
    findings.add(check_process(recipe.process, catalogue, sandbox))
    findings.add(check_system(recipe.system, catalogue))
    findings.add(check_executor(recipe.process, executor, catalogue))
    findings.errors += _refused(recipe, catalogue)
    findings.warnings += media_warnings(recipe, catalogue)
    return findings


def _refused(recipe: Recipe, catalogue: Catalogue) -> Iterator[str]:
    """Operators that the release refuses to run, unless it is told not to look."""
    if not (recipe.system.model_extra or {}).get("strict_preflight", True):
        return
    for step in recipe.process.operators:
        operator = catalogue.operators.get(step.name)
        if operator and any(each.type == _REFUSED_TYPE for each in operator.parameters):
            yield (
                f"Data-Juicer {catalogue.version} refuses `{step.name}` with any value before it "
                "runs: set strict_preflight to false in the system spec."
            )
