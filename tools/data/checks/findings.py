"""What is wrong with a spec, and what is only to be known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.core.errors import InvalidArgumentsError

MOST = 20
"""Errors that one refusal names."""


@dataclass(slots=True)
class Findings:
    """What was found.

    Attributes:
        errors: Why Data-Juicer would not run it, a sentence each.
        warnings: What is to be known of it although it would.
    """

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Takes over what was found elsewhere."""
        self.errors += other.errors
        self.warnings += other.warnings

    def refuse(self, what: str, suggestions: Iterable[str] = ()) -> None:
        """Refuses what has errors.

        Args:
            what: What it is, such as "The dataset spec".
            suggestions: Names that would have worked.

        Raises:
            InvalidArgumentsError: If there are any; it names them.
        """
        if self.errors:
            raise InvalidArgumentsError(
                f"{what} is not valid. {' '.join(self.errors[:MOST])}",
                suggestions=tuple(suggestions),
                next_actions=["Correct what is named and send it again."],
            )
