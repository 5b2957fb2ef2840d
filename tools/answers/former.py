"""Former values of facts, and the days on which they were replaced."""

from __future__ import annotations

from collections.abc import Sequence

from storage.people.models import FormerFact
from tools.answers.dates import utc
from tools.core.result import AnyJson, ToolModel


class FormerValue(ToolModel):
    """A value that was replaced.

    Attributes:
        name: The fact.
        value: Its former value.
        until: The day of the replacement, UTC.
    """

    name: str
    value: AnyJson
    until: str

    @classmethod
    def of(cls, fact: FormerFact) -> FormerValue:
        """Converts a former fact."""
        return cls(name=fact.name, value=fact.value, until=utc(fact.until).date().isoformat())

    def to_text(self) -> str:
        """Formats it in a few words."""
        return f"{self.name}: {self.value} (until {self.until})"


def former_values(facts: Sequence[FormerFact] | None) -> list[FormerValue] | None:
    """Converts former facts; None if they were not requested."""
    return None if facts is None else list(map(FormerValue.of, facts))
