"""Operators, and what else the release offers, as tools answer them."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Self

from pydantic import FiniteFloat

from tools.core.result import OmitNone, ToolModel
from tools.data.catalogue.catalogue import (
    AnyOperator,
    How,
    Operator,
    ParameterInfo,
    ReadOrMade,
    WayToLoad,
    cut,
)

if TYPE_CHECKING:  # a start needs no catalogue
    from tools.data.catalogue.catalogue import Catalogue

SUMMARY_CHARACTERS = 160  # of what an operator does, in a list

NOTHING_FITS = (
    "Say in English or Chinese what is to be done with the data, see all with "
    "list_operator_catalog, or write your own with develop_operator."
)
NOTHING_LEFT = "No operator has this op_type and all of these tags: leave some out."


class ListedOperator(AnyOperator):
    """An operator in a list.

    Attributes:
        summary: What it does.
        parameters: Its own parameters; absent unless they were asked for.
    """

    summary: str
    parameters: OmitNone[tuple[ParameterInfo, ...]] = None

    def to_text(self) -> str:
        """Returns one line, and one for each parameter."""
        lines = [each.to_text() for each in self.parameters or ()]
        return "\n  ".join([f"{self.head()}: {cut(self.summary, SUMMARY_CHARACTERS)}", *lines])


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
    def of(cls, operator: Operator, *scores: float | None) -> Self:
        """Returns an operator with its score, its BM25 and its cosine, as far as they are given."""
        named = zip_longest(("score", "bm25", "cosine"), scores)
        return cls.from_attributes(operator, **dict(named))

    def to_text(self) -> str:
        """Returns one line."""
        score = "" if self.score is None else f" [{self.score:.2f}]"
        return f"{self.head(score)}: {cut(self.summary, SUMMARY_CHARACTERS)}"


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
        """Returns a search's result, with the next step if it is empty."""
        step = None if operators else NOTHING_FITS if candidates else NOTHING_LEFT
        return cls(operators=operators, trace=trace, candidates=candidates, next_step=step)

    def to_text(self) -> str:
        """Returns a line for each operator, then who found them."""
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
    executors: tuple[str, ...]
    description: str
    parameters: tuple[ParameterInfo, ...]
    common_parameters: list[str]
    release: str

    @classmethod
    def of(cls, name: str, catalogue: Catalogue) -> Self:
        """Returns the operator that a name means."""
        operator, how = catalogue.resolve(name)
        own = {each.name for each in operator.parameters}
        return cls.from_attributes(
            operator,
            resolved=how,
            executors=operator.modes,
            common_parameters=[each for each in catalogue.common(operator.type) if each not in own],
            release=catalogue.version,
        )

    def to_text(self) -> str:
        """Returns what it does, then a line a parameter."""
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
        """Returns a line an operator, by type."""
        lines = [f"{self.total} operators of Data-Juicer {self.release}:"]
        lines += [f"{each.type}: {each.to_text()}" for each in self.operators]
        if self.next_cursor:
            lines.append(f"[More: cursor={self.next_cursor}]")
        return "\n".join(lines)


class Options(ToolModel):
    """Keys of a system spec.

    Attributes:
        options: The keys; one with a dot is a key within another.
        release: The release of Data-Juicer.
    """

    options: list[ParameterInfo]
    release: str

    def to_text(self) -> str:
        """Returns a line for each key."""
        head = f"{len(self.options)} keys of Data-Juicer {self.release}:"
        return "\n".join([head, *(each.to_text() for each in self.options)])


class Formatters(ToolModel):
    """The formatters.

    Attributes:
        formatters: All of them.
    """

    formatters: list[ReadOrMade]

    def to_text(self) -> str:
        """Returns a line for each."""
        return "\n".join(each.to_text() for each in self.formatters)


class Strategies(ToolModel):
    """The ways to load data.

    Attributes:
        strategies: All that were asked for.
    """

    strategies: tuple[WayToLoad, ...]

    def to_text(self) -> str:
        """Returns a line for each."""
        return "\n".join(each.to_text() for each in self.strategies)
