"""Operators as tools answer them: a line each, or all of one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from pydantic import FiniteFloat

from tools.core.result import AnyJson, OmitNone, ToolModel
from tools.data.catalogue.kinds import How, Kind, Runs

if TYPE_CHECKING:  # a start needs no catalogue
    from tools.data.catalogue.catalogue import Resolved
    from tools.data.catalogue.operator import Operator, Parameter
    from tools.data.catalogue.search import Score

SUMMARY_CHARACTERS = 160
"""Of what an operator does, in a list."""

DEFAULT_CHARACTERS = 80
"""Of a default in a line."""

NOTHING_FITS = (
    "Say in English or Chinese what is to be done with the data, see all with "
    "list_operator_catalog, or write your own with develop_operator."
)
NOTHING_LEFT = "No operator has this op_type and all of these tags: leave some out."


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
        given = "required" if self.is_required else f"= {_cut(default, DEFAULT_CHARACTERS)}"
        choices = " or ".join(map(repr, self.value_schema.get("enum", ())))
        typed = f": {choices or self.type}" if choices or self.type else ""
        said = f" | {self.description}" if self.description else ""
        return f"{self.name}{typed} {given}{said}"


class AnyOperator(ToolModel):
    """What every answer says of an operator.

    Attributes:
        name: Its name in a recipe.
        type: What kind it is of.
        tags: What it works on, and what it needs.
        runs: Which set-up of Data-Juicer runs it: the default ("here"), only --full, or none.
        why_not: Why the default set-up does not run it; absent if it does.
    """

    name: str
    type: Kind
    tags: list[str]
    runs: Runs
    why_not: OmitNone[str] = None

    @classmethod
    def of_operator(cls, operator: Operator, **given: object) -> Self:
        """An operator of the catalogue, with the other fields."""
        return cls.from_attributes(operator, why_not=operator.why_not or None, **given)

    def head(self, score: str = "", *more: str) -> str:
        """Its name with what it works on, and which set-up it needs or why none runs it."""
        needs = {"full": "needs --full", "no": f"cannot run here: {self.why_not}".rstrip(".")}
        limits = f" ({needs[self.runs]})" if self.runs in needs else ""
        return f"{self.name}{score} ({', '.join((*more, *self.tags))}){limits}"


class ListedOperator(AnyOperator):
    """An operator in a list.

    Attributes:
        summary: What it does.
        parameters: Its own parameters; absent unless they were asked for.
    """

    summary: str
    parameters: OmitNone[list[ParameterInfo]] = None

    @classmethod
    def of(cls, operator: Operator, *, with_parameters: bool = False) -> Self:
        """An operator of the catalogue."""
        shown = list(map(ParameterInfo.of, operator.parameters)) if with_parameters else None
        return cls.of_operator(operator, parameters=shown)

    def to_text(self) -> str:
        """One line, and one for each parameter."""
        lines = [each.to_text() for each in self.parameters or ()]
        return "\n  ".join([f"{self.head()}: {_cut(self.summary, SUMMARY_CHARACTERS)}", *lines])


class OperatorHit(AnyOperator):
    """An operator that was found.

    Attributes:
        summary: What it does.
        score: How well it fits, from 0 to 1, comparable between searches: the share of the intent's
            words and meaning that it has (1: all), less for another medium or executor and for what
            does not run here. A model's own estimate if it chose. Absent of a pattern.
        bm25: BM25 of its words; comparable only within one search.
        cosine: Similarity of its meaning; absent if only words were compared.
    """

    summary: str
    score: OmitNone[FiniteFloat] = None
    bm25: OmitNone[FiniteFloat] = None
    cosine: OmitNone[FiniteFloat] = None

    @classmethod
    def of(cls, operator: Operator, score: Score | float | None = None) -> Self:
        """An operator of the catalogue with its score, if it has one."""
        kinds = score if isinstance(score, tuple) else (score, None, None)
        return cls.of_operator(
            operator, **dict(zip(("score", "bm25", "cosine"), kinds, strict=True))
        )

    def to_text(self) -> str:
        """One line."""
        score = "" if self.score is None else f" [{self.score:.2f}]"
        return f"{self.head(score)}: {_cut(self.summary, SUMMARY_CHARACTERS)}"


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
        next_step: What to do if nothing was found.
    """

    operators: list[OperatorHit]
    trace: list[SearchStep]
    candidates: int
    next_step: OmitNone[str] = None

    @classmethod
    def of(
        cls, operators: list[OperatorHit], trace: list[SearchStep], candidates: int
    ) -> FoundOperators:
        """A search's result, with the next step if it is empty."""
        step = None if operators else NOTHING_FITS if candidates else NOTHING_LEFT
        return cls(operators=operators, trace=trace, candidates=candidates, next_step=step)

    def to_text(self) -> str:
        """A line for each operator, then who found them."""
        lines = [each.to_text() for each in self.operators]
        steps = (
            f"{each.searcher} found {each.found}" + (f" ({each.note})" if each.note else "")
            for each in self.trace
        )
        if self.next_step:
            lines = [f"No operator found. {self.next_step}"]
        return "\n".join([*lines, f"[Of {self.candidates} operators: {'; '.join(steps)}.]"])


class OperatorInfo(AnyOperator):
    """All that is known of an operator.

    Attributes:
        resolved: How the given name was understood.
        executors: Which run it.
        description: What it does.
        parameters: Its own parameters.
        common_parameters: The names of those that every operator of its kind takes.
        release: The release of Data-Juicer.
    """

    resolved: How
    executors: list[str]
    description: str
    parameters: list[ParameterInfo]
    common_parameters: list[str]
    release: str

    @classmethod
    def of(cls, found: Resolved, common: Iterable[str], release: str) -> Self:
        """An operator of the catalogue, with what all of its kind take."""
        operator = found.operator
        own = {each.name for each in operator.parameters}
        return cls.of_operator(
            operator,
            resolved=found.how,
            executors=operator.modes,
            parameters=list(map(ParameterInfo.of, operator.parameters)),
            common_parameters=[each for each in common if each not in own],
            release=release,
        )

    def to_text(self) -> str:
        """What it does, then a line a parameter."""
        how = "" if self.resolved == "exact" else f", understood by {self.resolved}"
        lines = [
            f"{self.head('', self.type)}{how}",
            self.description,
            f"Executors: {', '.join(self.executors)}",
        ]
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


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
