"""What a question over memory and knowledge is answered."""

from __future__ import annotations

from storage.retrieval.inquiry import AS_ASKED, UNSAID, Findings, Scope
from tools.answers.retrieved import Coverage, Hit, Retrieved

__all__ = ["Answer"]

ADVICE = "Ask in other words, or without filters."
ADVICE_WHERE_NARROWED = (
    "Ask in other words, or everywhere: scope all, without layer, source or filters."
)


class Answer(Retrieved):
    """What was found, and where.

    Attributes:
        scope: Where it was looked for: memory, knowledge or all.
        why: Why there.
        asked: The query as it was put to the index, where that is more than was asked: what was
            asked before in this session belongs to it.
        cached: The recent query whose answer this is, where nothing has changed since.
    """

    scope: str
    why: str
    asked: str | None
    cached: str | None

    @classmethod
    def of_findings(cls, found: Findings, query: str) -> Answer:
        """The findings as a tool answers them.

        Args:
            found: What was found.
            query: What was asked.
        """
        return cls(
            mode=found.mode,
            hits=[Hit.of_finding(each, found.asked) for each in found.found],
            coverage=Coverage.of(found.status),
            unknown_entities=list(found.unknown_names),
            scope=found.scope,
            why=found.why,
            asked=None if found.asked == query else found.asked,
            cached=found.cached or None,
        )

    def summary(self) -> str:
        """How many hits there are, and how they were looked for where that is not plain."""
        parts = [super().summary().removesuffix(".")]
        if self.scope != Scope.ALL or self.why not in {AS_ASKED, UNSAID}:
            parts.append(f"looked in {self.scope}: {self.why}")
        if self.asked:
            parts.append(f"asked as {self.asked!r}")
        if self.cached:
            parts.append(f"the same answer as to {self.cached!r} before: nothing has changed")
        text = f"{'; '.join(parts)}."
        if self.hits:
            return text
        return f"{text} {ADVICE if self.scope == Scope.ALL else ADVICE_WHERE_NARROWED}"
