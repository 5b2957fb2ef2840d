"""Parts of recipes, and plans, as tools answer them: the JSON, then the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, SystemSpec

if TYPE_CHECKING:  # a start checks nothing
    from tools.data.checks.findings import Findings

SHOWN_ERRORS = 20


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
