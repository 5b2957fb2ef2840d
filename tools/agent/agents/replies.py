"""Replies: extracts an agent's answer from its output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.agent.agents.agent import Reply
from tools.core.invisible import encodable

MOST_COST = 1e6
"""Limit in US dollars above which a reported cost is ignored."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an agent."""

    text: str  # its answer; the whole output if no answer was found in it
    cost: float | None = None  # US dollars; None if not reported
    session: str = ""  # the agent's own session ID; empty if not reported
    is_found: bool = True  # whether the answer was at the expected path


def read_answer(printed: str, reply: Reply) -> Answer:
    """Parses an agent's output; never fails.

    Of several JSON lines, the last one with an answer wins; costs are summed.
    """
    if not reply.answer:
        return Answer(printed.strip())
    documents = list(_documents(printed))
    texts = [encodable(text) for text in _at(documents, reply.answer) if isinstance(text, str)]
    costs = [cost for cost in _at(documents, reply.cost) if _is_cost(cost)]
    sessions = [encodable(each) for each in _at(documents, reply.session) if isinstance(each, str)]
    return Answer(
        text=(texts[-1] if texts else printed).strip(),
        cost=sum(costs) if costs else None,
        session=sessions[-1][:200] if sessions else "",
        is_found=bool(texts),
    )


def _documents(printed: str) -> Iterator[object]:
    """Yields the JSON documents in a text: the whole text, or each line that parses."""
    for text in (printed, *printed.splitlines()):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        yield from found if isinstance(found, list) else [found]
        if text is printed:
            return


def _at(documents: list[object], path: str) -> Iterator[Any]:
    """Yields the value at a dotted path, from each document that has one."""
    for found in documents if path else ():
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None  # noqa: PLW2901  # one step down
        if found is not None:
            yield found


def _is_cost(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= MOST_COST  # no NaN is
