"""Parts of recipes, and plans, as tools answer them: the JSON, then what to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.core.result import ToolModel
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, SystemSpec

if TYPE_CHECKING:  # a start checks nothing
    from tools.data.checks.findings import Findings


class Checked(ToolModel):
    """Whether something is valid.

    Attributes:
        valid: Whether Data-Juicer would take it, as far as can be told before it runs.
        errors: Why it would not.
        warnings: What is to be known of it although it would.
    """

    valid: bool
    errors: list[str]
    warnings: list[str]

    @classmethod
    def of(cls, findings: Findings) -> Checked:
        """What was found."""
        return cls(valid=not findings.errors, **_lists(findings))

    def to_text(self) -> str:
        """The verdict, then a line for each."""
        errors = [f"Error: {each}" for each in self.errors]
        return _lines("Valid." if self.valid else "Not valid.", [*errors, *_told(self.warnings)])


class BuiltDatasetSpec(ToolModel):
    """The dataset part of a recipe.

    Attributes:
        dataset_spec: The part.
        warnings: What is to be known of it.
    """

    dataset_spec: DatasetSpec
    warnings: list[str]

    def to_text(self) -> str:
        """The part as JSON, then the warnings."""
        return _lines(_json(self.dataset_spec), _told(self.warnings))


class BuiltProcessSpec(ToolModel):
    """The operators of a recipe.

    Attributes:
        process_spec: The operators, by their names in the release.
        warnings: What is to be known of them, such as names that were understood.
    """

    process_spec: ProcessSpec
    warnings: list[str]

    def to_text(self) -> str:
        """The operators as JSON, then the warnings."""
        return _lines(_json(self.process_spec), _told(self.warnings))


class BuiltSystemSpec(ToolModel):
    """How a recipe is run.

    Attributes:
        system_spec: The keys.
        warnings: What is to be known of them.
    """

    system_spec: SystemSpec
    warnings: list[str]

    def to_text(self) -> str:
        """The keys as JSON, then the warnings."""
        return _lines(_json(self.system_spec), _told(self.warnings))


class AssembledPlan(ToolModel):
    """A plan of valid parts.

    Attributes:
        plan: The plan.
        warnings: What is to be known of it.
    """

    plan: Plan
    warnings: list[str]

    def to_text(self) -> str:
        """The plan as JSON, then the warnings."""
        return _lines(_json(self.plan), _told(self.warnings))


class SavedPlan(ToolModel):
    """A plan that was saved.

    Attributes:
        plan_path: The file, relative to the root.
        sha256: Digest of its content.
        operators: The operators in their order.
        warnings: What is to be known of the plan.
    """

    plan_path: str
    sha256: str
    operators: list[str]
    warnings: list[str]

    def to_text(self) -> str:
        """Where it is, then the warnings."""
        done = f"Saved {self.plan_path}: {' > '.join(self.operators)}. `apply_recipe` runs it."
        return _lines(done, _told(self.warnings))


def _lists(findings: Findings) -> dict[str, list[str]]:
    return {"errors": findings.errors, "warnings": findings.warnings}


def _told(warnings: list[str]) -> list[str]:
    return [f"Note: {each}" for each in warnings]


def _lines(head: str, rest: list[str]) -> str:
    return "\n".join([head, *rest])


def _json(part: ToolModel) -> str:
    return part.model_dump_json(exclude_none=True)
