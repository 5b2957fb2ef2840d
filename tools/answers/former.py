"""What was known before: values that others took the place of, and until which day they held."""

from __future__ import annotations

from collections.abc import Sequence

from storage.people.models import FormerFact
from tools.answers.dates import utc
from tools.core.result import AnyJson, ToolModel


class FormerValue(ToolModel):
    """What was known before something else took its place.

    Attributes:
        name: Of the fact.
        value: What it was.
        until: The day on which it was replaced, UTC.
    """

    name: str
    value: AnyJson
    until: str

    @classmethod
    def of(cls, fact: FormerFact) -> FormerValue:
        """The former fact as a tool answers it."""
        return cls(name=fact.name, value=fact.value, until=utc(fact.until).date().isoformat())

    def to_text(self) -> str:
        """A few words."""
        return f"{self.name}: {self.value} (until {self.until})"


def former_values(facts: Sequence[FormerFact] | None) -> list[FormerValue] | None:
    """Former facts as a tool answers them; None where nobody asked for them."""
    return None if facts is None else list(map(FormerValue.of, facts))
