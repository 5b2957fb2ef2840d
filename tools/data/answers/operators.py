"""Operators as tools answer them: a line each, or all of one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import FiniteFloat

from tools.core.result import AnyJson, OmitNone, ToolModel
from tools.data.catalogue.kinds import How, Kind

if TYPE_CHECKING:  # a start needs no catalogue
    from tools.data.catalogue.catalogue import Resolved
    from tools.data.catalogue.operator import Operator, Parameter
    from tools.data.catalogue.search import Score

SUMMARY_CHARACTERS = 160
"""Of what an operator does, in a list."""

DEFAULT_CHARACTERS = 80
"""Of a default in a line."""


class ParameterInfo(ToolModel):
    """A parameter.

    Attributes:
        name: Its name.
        type: Its type as the release writes it; empty where it says none.
        value_schema: JSON Schema of its values; an empty one takes any.
        description: What it is for.
        is_required: Whether it has to be given.
        default: What it is else; null of a required one.
        computed: How the default is written, where only running it would tell its value.
    """

    name: str
    type: str
    value_schema: dict[str, Any]
    description: str
    is_required: bool
    default: AnyJson = None
    computed: OmitNone[str] = None

    @classmethod
    def of(cls, parameter: Parameter) -> ParameterInfo:
        """A parameter of the catalogue."""
        return cls.from_attributes(
            parameter,
            value_schema=dict(parameter.schema),
            computed=parameter.computed or None,
        )

    def to_text(self) -> str:
        """One line."""
        default = self.computed or json.dumps(self.default, ensure_ascii=False)
        if len(default) > DEFAULT_CHARACTERS:
            default = f"{default[:DEFAULT_CHARACTERS]}…"
        given = "required" if self.is_required else f"= {default}"
        choices = " or ".join(map(repr, self.value_schema.get("enum", ())))
        typed = f": {choices or self.type}" if choices or self.type else ""
        said = f" | {self.description}" if self.description else ""
        return f"{self.name}{typed} {given}{said}"


class ListedOperator(ToolModel):
    """An operator in a list.

    Attributes:
        name: Its name in a recipe.
        type: What kind it is of.
        tags: What it works on, and what it needs.
        summary: What it does.
        parameters: Its own parameters; absent where they were not asked for.
    """

    name: str
    type: Kind
    tags: list[str]
    summary: str
    parameters: OmitNone[list[ParameterInfo]] = None

    @classmethod
    def of(cls, operator: Operator, *, with_parameters: bool = False) -> ListedOperator:
        """An operator of the catalogue."""
        shown = list(map(ParameterInfo.of, operator.parameters)) if with_parameters else None
        return cls.from_attributes(operator, tags=list(operator.tags), parameters=shown)

    def to_text(self) -> str:
        """One line, and one for each parameter."""
        head = f"{self.name} ({', '.join(self.tags)}): {_short(self.summary)}"
        return "\n  ".join([head, *(each.to_text() for each in self.parameters or ())])


class OperatorHit(ToolModel):
    """An operator that was found.

    Attributes:
        name: Its name in a recipe.
        type: What kind it is of.
        tags: What it works on, and what it needs.
        summary: What it does.
        score: How well it fits, by which it is ranked: BM25 of a search by words alone, 0 to 1 of
            one by words and meaning, 0 to 100 of a model; absent of a pattern, which fits or not.
        bm25: Of its words; absent where they were not asked.
        cosine: Of its meaning; absent where that was not asked.
    """

    name: str
    type: Kind
    tags: list[str]
    summary: str
    score: OmitNone[FiniteFloat] = None
    bm25: OmitNone[FiniteFloat] = None
    cosine: OmitNone[FiniteFloat] = None

    @classmethod
    def of(cls, operator: Operator, score: float | None = None) -> OperatorHit:
        """An operator of the catalogue with the score that it has, if it has one."""
        tags = list(operator.tags)
        return cls.from_attributes(operator, tags=tags, score=score, bm25=None, cosine=None)

    @classmethod
    def scored(cls, operator: Operator, score: Score) -> OperatorHit:
        """An operator of the catalogue with what a search found."""
        tags = list(operator.tags)
        of_search = {"score": score.score, "bm25": score.bm25, "cosine": score.cosine}
        return cls.from_attributes(operator, tags=tags, **of_search)

    def to_text(self) -> str:
        """One line."""
        score = "" if self.score is None else f" [{self.score:.2f}]"
        return f"{self.name}{score} ({', '.join(self.tags)}): {_short(self.summary)}"


class SearchStep(ToolModel):
    """A searcher that was asked.

    Attributes:
        searcher: "bm25", "hybrid" (words and meaning), "regex" or "llm".
        found: How many operators it found among those that the filters leave.
        note: What to know of it; absent where there is nothing.
    """

    searcher: str
    found: int
    note: OmitNone[str] = None


class FoundOperators(ToolModel):
    """What a search found.

    Attributes:
        operators: The operators, the best first.
        trace: The searchers that were asked, in their order.
        candidates: How many operators the filters leave.
    """

    operators: list[OperatorHit]
    trace: list[SearchStep]
    candidates: int

    def to_text(self) -> str:
        """A line an operator, then who found them."""
        lines = [each.to_text() for each in self.operators]
        steps = (
            f"{each.searcher} found {each.found}" + (f" ({each.note})" if each.note else "")
            for each in self.trace
        )
        if not lines:
            lines = ["No operator found."]
        return "\n".join([*lines, f"[Of {self.candidates} operators: {'; '.join(steps)}.]"])


class OperatorInfo(ToolModel):
    """All that is known of an operator.

    Attributes:
        name: Its name in a recipe.
        resolved: How the given name was understood.
        type: What kind it is of.
        tags: What it works on, and what it needs.
        executors: Which run it.
        description: What it does.
        parameters: Its own parameters.
        common_parameters: The names of those that every operator of its kind takes.
        release: The release of Data-Juicer.
    """

    name: str
    resolved: How
    type: Kind
    tags: list[str]
    executors: list[str]
    description: str
    parameters: list[ParameterInfo]
    common_parameters: list[str]
    release: str

    @classmethod
    def of(cls, found: Resolved, common: Iterable[str], release: str) -> OperatorInfo:
        """An operator of the catalogue, with what all of its kind take."""
        operator = found.operator
        own = {each.name for each in operator.parameters}
        return cls.from_attributes(
            operator,
            resolved=found.how,
            tags=list(operator.tags),
            executors=list(operator.modes),
            parameters=list(map(ParameterInfo.of, operator.parameters)),
            common_parameters=[each for each in common if each not in own],
            release=release,
        )

    def to_text(self) -> str:
        """What it does, then a line a parameter."""
        head = f"{self.name} ({', '.join((self.type, *self.tags))})"
        how = "" if self.resolved == "exact" else f", understood by {self.resolved}"
        lines = [f"{head}{how}", self.description, f"Executors: {', '.join(self.executors)}"]
        lines += [f"- {each.to_text()}" for each in self.parameters] or ["No own parameters."]
        return "\n".join([*lines, f"Also: {', '.join(self.common_parameters)}"])


class OperatorPage(ToolModel):
    """A page of the catalogue.

    Attributes:
        operators: Those of this page, by name.
        total: How many the filters leave.
        next_cursor: Where the next page begins; absent on the last.
        release: The release of Data-Juicer.
    """

    operators: list[ListedOperator]
    total: int
    next_cursor: OmitNone[str] = None
    release: str

    def to_text(self) -> str:
        """A line an operator, by type."""
        lines = [f"{self.total} operators of Data-Juicer {self.release}:"]
        lines += [f"{each.type}: {each.to_text()}" for each in self.operators]
        if self.next_cursor:
            lines.append(f"[More: cursor={self.next_cursor}]")
        return "\n".join(lines)


def _short(summary: str) -> str:
    if len(summary) <= SUMMARY_CHARACTERS:
        return summary
    return f"{summary[: SUMMARY_CHARACTERS - 1]}…"
