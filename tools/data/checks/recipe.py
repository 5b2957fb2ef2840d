"""Whether the parts of a recipe are valid, each and together."""

from __future__ import annotations

from tools.data.catalogue.catalogue import Catalogue
from tools.data.checks.dataset import check_dataset
from tools.data.checks.findings import Findings
from tools.data.checks.process import check_executor, check_process
from tools.data.checks.system import check_system
from tools.data.recipe import Recipe
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["check_recipe"]


def check_recipe(recipe: Recipe, catalogue: Catalogue, sandbox: Sandbox) -> Findings:
    """What is wrong with a recipe: with its parts, and with how they go together."""
    executor = recipe.system.executor_type
    findings = check_dataset(recipe.dataset, executor, catalogue, sandbox)
    findings.add(check_process(recipe.process, catalogue, sandbox))
    findings.add(check_system(recipe.system, catalogue))
    findings.add(check_executor(recipe.process, executor, catalogue))
    return findings
